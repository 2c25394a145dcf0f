package ingest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
)

// TestReadSets checks that the sets of a table equal a Set of their rows, whether they are small,
// listed or large.
func TestReadSets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	rows := map[string]int{"Asia/Singapore": listedMembers + 5000, "Asia/Jakarta": sortedMembers * 3,
		"Europe/Berlin": 100, "America/Argentina/Buenos_Aires": 1}
	want := map[string]*bitmap.Set{}
	var text strings.Builder
	text.WriteString("user_id,timezone\n")
	for name, n := range rows {
		want["tz/"+name] = new(bitmap.Set)
		for range n {
			id := r.Uint32N(1 << 22)
			want["tz/"+name].Add(id)
			fmt.Fprintf(&text, "%d,%s\n", id, name)
		}
	}
	path := write(t, "zones.csv", []byte(text.String()))
	for _, workers := range []int{1, 4} {
		reader := NewReader(Config{Workers: workers})
		sets, err := reader.ReadSets(t.Context(), []Input{{Path: path}}, "tz/")
		require.NoError(t, err)
		require.NoError(t, reader.Check())
		require.Len(t, sets, len(want))
		for name, set := range want {
			require.Equal(t, set.Bitmap().Bytes(), sets[name].Bytes(), name)
		}
	}
}

func TestRowsOfSetsThatAreBad(t *testing.T) {
	t.Parallel()
	path := write(t, "zones.csv", []byte("user_id,timezone\n1,Asia/Singapore\n2,Local\n3,\n4,../etc\n5,asia "+
		"singapore\n"))
	reader := NewReader(Config{})
	sets, err := reader.ReadSets(t.Context(), []Input{{Path: path}}, "tz/")
	require.NoError(t, err)
	require.Len(t, sets, 1)
	require.Equal(t, []uint32{1}, sets["tz/Asia/Singapore"].IDs())
	bad := reader.Check()
	require.ErrorContains(t, bad, "4 bad rows")
	require.ErrorContains(t, bad, `:3: "Local": set name "tz/Local": "Local": must be a time zone`)
	_, err = reader.ReadSets(t.Context(), []Input{{Path: write(t, "a.txt", []byte("1\n"))}}, "tz/")
	require.Error(t, err, "ids alone are no table")
}
