package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

// TestUserListsHoldEachIDOnce reads ids in several formats and with repeats, and gets every id back in the order of the
// images.
func TestUserListsHoldEachIDOnce(t *testing.T) {
	t.Parallel()
	key, err := ids.ParseKey("2b7e151628aed2a6abf7158809cf4f3c")
	require.NoError(t, err)
	for _, kind := range []ids.Kind{ids.Uint64, ids.UUID, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			scheme := ids.New(kind, key)
			var want []string
			var text, lines strings.Builder
			text.WriteString("user_id\n")
			type row struct {
				ID string `parquet:"user_id"`
			}
			var rows []row
			for i := range uint32(3000) {
				id := idOf(kind, i)
				want = append(want, id)
				if i%3 != 1 {
					fmt.Fprintln(&text, id)
				}
				if i%3 == 1 || i%5 == 0 {
					fmt.Fprintf(&lines, "{\"user_id\": %q}\n", id)
				}
				rows = append(rows, row{id}, row{id})
			}
			folder := t.TempDir()
			var table strings.Builder
			require.NoError(t, parquet.Write(&table, rows))
			csv, json := testFile(t, folder, "a.csv", text.String()), testFile(t, folder, "b.ndjson", lines.String())
			for _, paths := range [][]string{{csv, json}, {testFile(t, folder, "c.parquet", table.String())}} {
				var inputs []Input
				for _, path := range paths {
					inputs = append(inputs, Input{Path: path})
				}
				r := NewReader(Config{Scheme: scheme, Workers: 3})
				list, err := r.ReadUsers(t.Context(), inputs)
				require.NoError(t, err)
				require.NoError(t, r.Check())
				requireUsers(t, want, list)
			}
		})
	}
}

func requireUsers(t *testing.T, want []string, list *UserList) {
	t.Helper()
	scheme := list.Scheme()
	var got []string
	for i := range list.Len() {
		id := list.AppendText(nil, i)
		got = append(got, string(id))
		image, err := scheme.Parse(id)
		require.NoError(t, err)
		require.Equal(t, image, list.Image(i))
		if i > 0 {
			require.Less(t, list.Image(i-1), list.Image(i))
		}
		if width := scheme.Width(); width > 0 {
			require.Equal(t, string(id), string(scheme.Unpack(nil, list.AppendPacked(nil, i))))
		}
	}
	slices.Sort(got)
	require.Equal(t, slices.Sorted(slices.Values(want)), got)
}
