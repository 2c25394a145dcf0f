package archive_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

func record() *audit.Record {
	return &audit.Record{
		Kind: audit.Filter, Instance: "0123456789abcdef", Sequence: 7, At: 91_000_000_123, Took: 9 * time.Millisecond,
		Message: capping.Message{Namespace: "crm", ID: "<promo> \"7\"\n"}, Channel: 1, Client: "crm", Key: "k1",
		Generation: "g1", Config: "c1",
		Groups: []audit.Group{
			{Outcome: audit.Allowed, Users: bitmap.Range(0, 3000)},
			{Outcome: audit.Denied, By: capping.BySuppression, Limit: "suppressed", Set: "opted-out",
				Users: bitmap.Of(4_294_967_295)},
		},
	}
}

// want is the rows of the record.
func want(r *audit.Record) (rows []archive.Row) {
	for i := range r.Groups {
		for user := range r.Groups[i].Users.All() {
			row := archive.RowOf(r, &r.Groups[i], "push")
			row.UserID = int64(user)
			rows = append(rows, row)
		}
	}
	return rows
}

func write(t *testing.T, format string) *bytes.Buffer {
	var out bytes.Buffer
	w, err := archive.NewWriter(format, &out)
	require.NoError(t, err)
	require.NoError(t, w.Add(record(), "push"))
	require.NoError(t, w.Close())
	require.EqualValues(t, 3001, w.Rows())
	return &out
}

func TestNDJSONHoldsEveryRow(t *testing.T) {
	t.Parallel()
	var got []archive.Row
	for line := range strings.Lines(write(t, archive.NDJSON).String()) {
		var row archive.Row
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&row))
		at, err := time.Parse(time.RFC3339, row.Time)
		require.NoError(t, err)
		row.TimeMS = at.UnixMilli()
		got = append(got, row)
	}
	require.Equal(t, want(record()), got)
}

func TestParquetHoldsEveryRow(t *testing.T) {
	t.Parallel()
	raw := write(t, archive.Parquet).Bytes()
	got, err := parquet.Read[archive.Row](bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	rows := want(record())
	for i := range rows {
		rows[i].Time = "" // the table has it as a timestamp
	}
	require.Equal(t, rows, got)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWhatCannotBeWrittenIsToldOf(t *testing.T) {
	t.Parallel()
	for _, format := range []string{archive.NDJSON, archive.Parquet} {
		w, err := archive.NewWriter(format, full{})
		require.NoError(t, err)
		require.ErrorContains(t, errors.Join(w.Add(record(), ""), w.Close()), "no space left", format)
	}
	_, err := archive.NewWriter("csv", full{})
	require.ErrorContains(t, err, `unknown export format "csv"`)
}
