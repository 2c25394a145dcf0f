package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReportsSayWhatWasReadFromWhere checks the column, the rows and the number of distinct ids in the
// reports.
func TestReportsSayWhatWasReadFromWhere(t *testing.T) {
	t.Parallel()
	type row struct {
		Name  string `parquet:"name"`
		Owner int64  `parquet:"customerId"`
	}
	for _, c := range []struct {
		name, content, column string
	}{
		{"a.txt", "5\n6\n5\n", ""},
		{"b.txt", "user_id\n5\n6\n5\n", "user_id"},
		{"a.csv", "x,5\nx,6\nx,5\n", "2"},
		{"b.csv", "name,customerId\nx,5\nx,6\nx,5\n", "customerId"},
		{"a.tsv", "uid\tn\n5\tx\n6\tx\n5\tx\n", "uid"},
		{"a.ndjson", "{\"user_id\":5}\n{\"user_id\":6}\n{\"user_id\":5}\n", "user_id"},
		{"a.parquet", "", "customerId"},
	} {
		in := Input{Path: write(t, c.name, []byte(c.content))}
		if c.name == "a.csv" {
			in.IDColumn = "2"
		}
		if c.content == "" {
			in.Path = parquetFile(t, []row{{"x", 5}, {"x", 6}, {"x", 5}})
		}
		r := NewReader(Config{})
		_, err := r.ReadIDs(t.Context(), []Input{in})
		require.NoError(t, err, c.name)
		report := r.Reports()[0]
		require.Equal(t, c.column, report.Column, c.name)
		require.EqualValues(t, 3, report.Rows, c.name)
		require.EqualValues(t, 2, report.DistinctIDs, c.name)
		require.False(t, report.DistinctEstimated, c.name)
	}
}

func TestDistinctIDsOfLongFilesAreEstimated(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, users := range []uint32{1, 1000, 20_000, 60_000, 200_000, 1 << 31} {
		var text bytes.Buffer
		want := map[uint32]bool{}
		for range 100_000 {
			id := random.Uint32N(users)
			want[id] = true
			fmt.Fprintf(&text, "%d\n", id)
		}
		r := NewReader(Config{})
		_, err := r.ReadIDs(t.Context(), []Input{{Path: write(t, "a.txt", text.Bytes())}})
		require.NoError(t, err)
		report := r.Reports()[0]
		require.True(t, report.DistinctEstimated)
		require.InEpsilon(t, len(want), report.DistinctIDs, 0.03, "%d users", users)
	}
}
