package terminal

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesKeepCellsInTheirColumns(t *testing.T) {
	t.Parallel()
	rows := [][]any{{"NAME", "USERS"}, {"a\tb\x1b", 7, "and more"}, {"日本", 1200}}
	var left, right bytes.Buffer
	require.NoError(t, Table(&left, Left, rows...))
	require.Equal(t, "NAME        USERS\n"+`a\tb\u001b  7  and more`+"\n日本          1200\n", left.String())
	require.NoError(t, Table(&right, Right, rows...))
	require.Equal(t, "        NAME  USERS\n"+`  a\tb\u001b      7  and more`+"\n          日本   1200\n", right.String())
	require.ErrorContains(t, Table(broken{}, Left, rows...), "broken")
}

func TestJSONIsForMachines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, JSON(&b, map[string]any{"a": "<1 & 2>"}))
	require.Equal(t, "{\n  \"a\": \"<1 & 2>\"\n}\n", b.String())
}
