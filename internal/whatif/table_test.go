package whatif

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSentencesSayOnceHowManyWereJudgedAnew(t *testing.T) {
	t.Parallel()
	lines := strings.Join(Sentences(&Result{
		Calls: 1, Asked: 3607, Judged: 3607, Erased: 14,
	}), "\n")
	require.Contains(t, lines,
		" 1 call, 3,607 users asked for, counted in each call; 3,607 of these were judged again\n")
	require.Equal(t, 1, strings.Count(lines, "judged again"))
	require.Contains(t, lines, "14 results of users who have been erased since")
}

func TestNamesOfThePageAreNotBrokenAfterEachLetter(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	require.NoError(t, Page(&page, "stricter.yaml", &Result{Calls: 1}, 10))
	require.NotContains(t, page.String(), "anywhere", "a column would become one letter wide")
	require.Contains(t, page.String(), "overflow-x: auto")
}
