package format_test

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func read(
	t *testing.T,
	name string,
	data []byte,
	o format.SendOptions,
) (rows []format.SendRow, bad []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	o.Now = noon
	err = format.ReadSends(
		t.Context(),
		objects.LocalFiles{},
		path,
		o,
		nil,
		func(r format.SendRow, fault *format.RowError) error {
			if fault != nil {
				bad = append(bad, fault.Error())
				return nil
			}
			rows = append(rows, r)
			return nil
		},
	)
	return rows, bad, err
}

func TestTimes(t *testing.T) {
	t.Parallel()
	singapore, err := time.LoadLocation("Asia/Singapore")
	require.NoError(t, err)
	at := time.Date(2026, 11, 20, 9, 12, 44, 120e6, time.UTC).UnixMilli()
	for text, want := range map[string]int64{
		"2026-11-20T09:12:44.120Z": at, "2026-11-20T17:12:44.1209+08:00": at, "2026-11-20 09:12:44.12Z": at,
		"2026-11-20 09:12:44.120 UTC": at,
		"2026-11-20 17:12:44.120":     at, "2026-11-20T17:12:44.120": at, " 2026-11-20T09:12:44.12Z ": at,
		"1795165964.12": at, "1795165964120": at, "1795165964": at - 120, "946684800": 946684800000,
	} {
		rows, bad, err := read(t, "x.csv", []byte("user_id,at\n7,"+text+"\n"), format.SendOptions{Zone: singapore})
		require.NoError(t, err)
		require.Empty(t, bad, text)
		require.Equal(t, []format.SendRow{{User: 7, At: want}}, rows, text)
	}
	for _, text := range []string{"", "now", "2026-11-20", "2026-11-31T09:00:00Z", "-5", "1e9", "17951659641200",
		"1795165964120.5", "1795165964.", "2026-11-20 09:12:44 CET", "2026-11-20T12:01:00Z",
		"0", "261122", "0611221000", "202611221000", "946684799.999", "1999-12-31T23:59:59Z",
		"0000-01-01T00:00:00+08:00", "0001-01-01 00:00:00"} {
		rows, bad, err := read(t, "x.csv", []byte("user_id,at\n7,"+text+"\n"), format.SendOptions{Zone: singapore})
		require.NoError(t, err)
		require.Empty(t, rows, text)
		require.Len(t, bad, 1, text)
	}
	_, bad, err := read(t, "x.csv", []byte("user_id,at\n7,2026-11-20 09:00:00\n"), format.SendOptions{})
	require.NoError(t, err)
	require.Contains(t, bad[0], "--timezone")
}

// TestEarlyTimesAreToldWithTheRule checks that the error for a date written as a number names the
// column and the time that the number would mean.
func TestEarlyTimesAreToldWithTheRule(t *testing.T) {
	t.Parallel()
	_, bad, err := read(t, "x.csv", []byte("user_id,sent\n7,202611221000\n"),
		format.SendOptions{Columns: format.Columns{At: "sent"}})
	require.NoError(t, err)
	require.Len(t, bad, 1)
	require.Contains(t, bad[0],
		`2: sent: "202611221000" means 1976-06-03T00:53:41Z, but the time of a send must not be before the year 2000`)
}

// TestTimesWhereClocksWerePut checks that a time that clocks showed twice means the later instant, and
// that a skipped time is rejected.
func TestTimesWhereClocksWerePut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, text, want string }{
		{"Europe/Berlin", "2026-10-25 01:59:59", "2026-10-24T23:59:59Z"},
		{"Europe/Berlin", "2026-10-25 02:00:00", "2026-10-25T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25 02:59:59", "2026-10-25T01:59:59Z"},
		{"Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
		{"Europe/Berlin", "2026-03-29 01:59:59", "2026-03-29T00:59:59Z"},
		{"Europe/Berlin", "2026-03-29 02:00:00", ""},
		{"Europe/Berlin", "2026-03-29 02:59:59", ""},
		{"Europe/Berlin", "2026-03-29 03:00:00", "2026-03-29T01:00:00Z"},
		{"America/New_York", "2025-11-02T01:30:00", "2025-11-02T06:30:00Z"},
		{"America/New_York", "2026-03-08T02:30:00", ""},
		{"Australia/Lord_Howe", "2026-04-05 01:45:00", "2026-04-04T15:15:00Z"},
		{"Pacific/Apia", "2011-12-29 23:59:59", "2011-12-30T09:59:59Z"},
		{"Pacific/Apia", "2011-12-30 12:00:00", ""},
		{"Pacific/Apia", "2011-12-31 00:00:00", "2011-12-30T10:00:00Z"},
		{"UTC", "2026-10-25 02:30:00", "2026-10-25T02:30:00Z"},
	} {
		zone, err := time.LoadLocation(test.zone)
		require.NoError(t, err)
		rows, bad, err := read(t, "x.csv", []byte("user_id,at\n7,"+test.text+"\n"), format.SendOptions{Zone: zone})
		require.NoError(t, err)
		if test.want == "" {
			require.Len(t, bad, 1, test)
			require.Contains(t, bad[0], `does not exist in time zone `+test.zone)
			continue
		}
		require.Empty(t, bad, test)
		require.Equal(t, test.want, time.UnixMilli(rows[0].At).UTC().Format(time.RFC3339), test)
	}
}

// TestTimesThatAreAhead checks that a time up to a second in the future is accepted only with a
// message id.
func TestTimesThatAreAhead(t *testing.T) {
	t.Parallel()
	rows, bad, err := read(t, "x.csv",
		[]byte("user_id,at,message_id\n7,2026-11-20T12:00:00.001Z,\n8,2026-11-20T12:00:01Z,m\n"+
			"9,2026-11-20T12:00:00Z,\n10,2026-11-20T12:00:01.001Z,m\n"), format.SendOptions{})
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []string{
		"2: at: 2026-11-20T12:00:00.001Z is in the future: the time is now 2026-11-20T12:00:00Z, " +
			"and capper identifies a send without a message id by its time",
		"5: at: 2026-11-20T12:00:01.001Z is in the future: the time is now 2026-11-20T12:00:00Z"}, bad)
}

// columnOf returns a Parquet file of sends whose time column has any type.
func columnOf[T any](t *testing.T, rows ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, rows))
	return b.Bytes()
}

func TestParquetTimes(t *testing.T) {
	t.Parallel()
	type date struct {
		User uint32 `parquet:"user_id"`
		At   int32  `parquet:"at,date"`
	}
	type clock struct {
		User uint32 `parquet:"user_id"`
		At   int64  `parquet:"at,time(microsecond)"`
	}
	type legacy struct {
		User uint32           `parquet:"user_id"`
		At   deprecated.Int96 `parquet:"at"`
	}
	type nanos struct {
		User uint32 `parquet:"user_id"`
		At   int64  `parquet:"at,timestamp(nanosecond)"`
	}
	type local struct {
		User uint32 `parquet:"user_id"`
		At   int64  `parquet:"at,timestamp(millisecond:local)"`
	}
	for want, file := range map[string][]byte{
		`column "at" holds DATE`:  columnOf(t, date{7, 20777}),
		`column "at" holds TIME`:  columnOf(t, clock{7, 1}),
		`column "at" holds INT96`: columnOf(t, legacy{7, deprecated.Int96{1, 2, 3}}),
	} {
		_, _, err := read(t, "x.parquet", file, format.SendOptions{})
		require.ErrorContains(t, err, want)
	}
	at := noon.UnixMilli() - 877
	rows, bad, err := read(
		t,
		"x.parquet",
		columnOf(t, nanos{7, at * 1e6}, nanos{7, 0}, nanos{7, -1}),
		format.SendOptions{},
	)
	require.NoError(t, err)
	require.Equal(t, []format.SendRow{{User: 7, At: at}}, rows)
	require.Len(t, bad, 2)
	require.Contains(t, bad[0], `2: at: "1970-01-01T00:00:00Z" means`)

	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	twice := time.Date(2026, 10, 25, 2, 30, 0, 120e6, time.UTC).UnixMilli()
	file := columnOf(t, local{7, twice})
	rows, _, err = read(t, "x.parquet", file, format.SendOptions{Zone: berlin})
	require.NoError(t, err)
	require.Equal(t, []format.SendRow{{User: 7, At: twice - 3600e3}}, rows)
	_, bad, err = read(t, "x.parquet", file, format.SendOptions{})
	require.NoError(t, err)
	require.Contains(t, bad[0], "has no offset from UTC")
}

func TestFormats(t *testing.T) {
	t.Parallel()
	want := []format.SendRow{{User: 7, At: noon.UnixMilli() - 1000, Channel: "push", MessageID: "a\"b,c"},
		{User: 4294967295, At: noon.UnixMilli() - 2000, Channel: "email"}}
	o := format.SendOptions{
		Channel:      "email",
		Channels:     map[string]bool{"push": true, "email": true},
		FinalNewline: true,
	}
	zipped := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	csv := "\ufeffmessage_id,x,at,user_id,channel\n\"a\"\"b,c\",0,2026-11-20T11:59:59Z,7,push\n" +
		",0,1795175998,4294967295,\n"
	ndjson := `{"user_id":7,"at":"2026-11-20T11:59:59Z","channel":"push","message_id":"a\"b,c","x":{}}` + "\n\n" +
		`{"user_id":"4294967295","at":1795175998000}`
	type row struct {
		User      uint32    `parquet:"user_id"`
		At        time.Time `parquet:"at,timestamp(microsecond)"`
		Channel   *string   `parquet:"channel,optional"`
		MessageID string    `parquet:"message_id,dict"`
	}
	push := "push"
	var table bytes.Buffer
	require.NoError(t, parquet.Write(&table, []row{{7, noon.Add(-time.Second), &push, "a\"b,c"},
		{4294967295, noon.Add(-2 * time.Second), nil, ""}}))
	for name, data := range map[string][]byte{
		"x.csv": []byte(csv), "x.csv.gz": zipped(csv), "x": []byte(csv),
		"x.tsv":    []byte(strings.NewReplacer("\"a\"\"b,c\"", "a\"b,c", ",", "\t").Replace("")),
		"x.ndjson": []byte(ndjson), "x.json.gz": zipped(ndjson), "x.parquet": table.Bytes(), "y": table.Bytes(),
	} {
		rows, bad, err := read(t, name, data, o)
		require.NoError(t, err, name)
		require.Empty(t, bad, name)
		if len(data) == 0 {
			require.Empty(t, rows, name)
			continue
		}
		require.Equal(t, want, rows, name)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	long := "user_id,at\n" + strings.Repeat("7,1795175998\n", 3000)
	for want, file := range map[string][2]string{
		"column \"user_id\" does not": {"x.csv", "id,at\n1,2\n"},
		"column \"at\" exists twice":  {"x.csv", "user_id,at,at\n1,2,3\n"},
		"may be truncated":            {"x.csv", long + "7,17951"},
		"says gzip, but the content":  {"x.csv.gz", long},
		"not Parquet":                 {"x.parquet", long},
		"line 1: the column name \"message_id\\r7\" must not contain": {"x.csv",
			"user_id,at,message_id\r7,1795175998,a\r"},
		"column \"msg\" does not exist in any line: the columns are [\"at\" \"message\" \"user_id\"]": {"x.ndjson",
			strings.Repeat("{\"user_id\":7,\"at\":1795175998,\"message\":\"a\"}\n", 2)},
		"column \"msg\" does not exist": {"x.csv", "user_id,at,message\n7,1795175998,a\n"},
		"extraneous or missing \"":      {"x.csv", "user_id,at\n\"1,2\n"},
	} {
		columns := format.Columns{}
		if strings.Contains(want, "msg") {
			columns.MessageID = "msg"
		}
		_, _, err := read(t, file[0], []byte(file[1]), format.SendOptions{FinalNewline: true, Columns: columns})
		require.ErrorContains(t, err, want)
	}
	rows, _, err := read(t, "x.csv", []byte(long+"7,1795175998"), format.SendOptions{})
	require.NoError(t, err)
	require.Len(t, rows, 3001)
	_, bad, err := read(t, "x.csv", []byte("user_id,at,message_id\n1,1795175998\n-1,1795175998,\n1,1795175998,"+
		strings.Repeat("x", 129)+"\n"), format.SendOptions{})
	require.NoError(t, err)
	require.Len(t, bad, 3)
	_, bad, err = read(t, "x.ndjson",
		[]byte("7\n{\"user_id\":1.5,\"at\":1}\n{\"at\":1}\n{\"user_id\":1,\"at\":1}{}\n{\"user_id\":1,\"at\":true}\n"),
		format.SendOptions{})
	require.NoError(t, err)
	require.Len(t, bad, 5)
}

// TestLinesOfJSON checks that an ambiguous JSON line is rejected, and that a requested column may be
// missing in some lines.
func TestLinesOfJSON(t *testing.T) {
	t.Parallel()
	rows, bad, err := read(t, "x.ndjson", []byte(`{"user_id":1,"user_id":2,"at":1795175998}
{"user_id":3,"at":1795175998,"other":1,"other":{"at":[1]}}
{"user_id":4,"at":1795175998,"msg":null}
{"user_id":5,"at":1795175998,"msg":"a"}
{"user_id":6,"at":1795175998,"msg":"a"
{"user_id":null,"at":1795175998}
[]
`), format.SendOptions{Columns: format.Columns{MessageID: "msg"}})
	require.NoError(t, err)
	at := int64(1795175998000)
	require.Equal(t, []format.SendRow{{User: 3, At: at}, {User: 4, At: at}, {User: 5, At: at, MessageID: "a"}}, rows)
	require.Equal(t, []string{"1: field user_id is given twice",
		"5: line is not a JSON object: EOF", "6: user_id is missing",
		"7: line is not a JSON object"}, bad)
}

// TestSpellingsOfJSON checks that names and values may have escapes, and that bytes that are not UTF-8
// become U+FFFD.
func TestSpellingsOfJSON(t *testing.T) {
	t.Parallel()
	rows, bad, err := read(t, "x.ndjson", []byte(`{"\u0075ser_id":1,"at":1795175998,"message_id":"\u0061\ud83d\ude00"}`+
		"\r\n \t\r\n"+`{ "user_id" : "2" , "at" : "1795175998.5" , "x" : {"at":[1]} , "message_id" : "`+"\xff\xfe"+`" } `+
		"\n"+`{"user_id":3,"\u0061t":1795175998,"at":1795175998}`+"\n"+`{"user_id":true,"at":[]}`+"\n"+
		`{"user_id":4,"at":1795175998} {}`), format.SendOptions{})
	require.NoError(t, err)
	at := int64(1795175998000)
	require.Equal(t, []format.SendRow{{User: 1, At: at, MessageID: "a😀"},
		{User: 2, At: at + 500, MessageID: "\ufffd\ufffd"}}, rows)
	require.Equal(t, []string{"4: field at is given twice", "5: user_id must be a string or a number",
		"6: line has more text after its JSON object"}, bad)
}

// endless returns a text that repeats its second part.
func endless(begin, again string, times int) []byte {
	return append([]byte(begin), bytes.Repeat([]byte(again), times)...)
}

// TestRowsAreBounded checks that a too long row ends the reading with an error that names its line and
// the limit.
func TestRowsAreBounded(t *testing.T) {
	t.Parallel()
	row := "7,2026-11-20T11:59:59Z,"
	for name, data := range map[string][]byte{
		"field":  endless("user_id,at,note\n"+row+"\"a\nb\"\n"+row, "x", 8<<20),
		"quoted": endless("user_id,at,note\n"+row+"\"a\nb\"\n"+row+"\"", row+"\n", 1<<18),
		"fields": endless("user_id,at,note\n"+row+"\"a\nb\"\n"+row, ",", 8<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows, _, err := read(t, "x.csv", data, format.SendOptions{})
			require.ErrorContains(t, err, "line 4: a row has more than 1048576 bytes, or a quote is never closed")
			require.Len(t, rows, 1)
		})
	}
	_, _, err := read(t, "x.csv", endless("user_id,at", "x", 8<<20), format.SendOptions{})
	require.ErrorContains(t, err, "line 1: a row has more than 1048576 bytes")
	_, _, err = read(t, "x.ndjson", endless(`{"user_id":7,"at":"`, "x", 8<<20), format.SendOptions{})
	require.ErrorContains(t, err, "line 1: must have at most 1048576 bytes")

	long := row + "\"" + strings.Repeat("x", 1<<20-len(row)-3) + "\"\n"
	rows, bad, err := read(t, "x.csv", endless("user_id,at,note\n", long, 5), format.SendOptions{})
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Len(t, rows, 5)
}

// TestNamespaces checks that each row has the namespace in its column, and that an empty cell means
// the namespace without a name. A namespace that differs from the requested one makes a bad row.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	type row struct {
		User      uint32  `parquet:"user_id"`
		At        int64   `parquet:"at"`
		Namespace *string `parquet:"namespace,optional"`
	}
	growth, crm, empty := "growth", "crm", ""
	at := noon.Unix() - 1
	files := map[string][]byte{
		"x.csv": []byte("user_id,at,namespace\n7,1795175999,growth\n8,1795175999,\n9,1795175999,crm\n"),
		"x.tsv": []byte("namespace\tuser_id\tat\ngrowth\t7\t1795175999\n\t8\t1795175999\ncrm\t9\t1795175999\n"),
		"x.ndjson": []byte(`{"user_id":7,"at":1795175999,"namespace":"growth"}` + "\n" +
			`{"user_id":8,"at":1795175999,"namespace":null}` + "\n" +
			`{"user_id":9,"at":1795175999,"namespace":"crm"}` + "\n"),
		"x.parquet": columnOf(t, row{7, at, &growth}, row{8, at, nil}, row{9, at, &crm}),
	}
	all := []format.SendRow{
		{User: 7, At: 1000 * at, Namespace: growth}, {User: 8, At: 1000 * at}, {User: 9, At: 1000 * at, Namespace: crm},
	}
	for name, data := range files {
		rows, bad, err := read(t, name, data, format.SendOptions{})
		require.NoError(t, err, name)
		require.Empty(t, bad, name)
		require.Equal(t, all, rows, name)
		for i, namespace := range []*string{&growth, &empty, &crm} {
			rows, bad, err := read(t, name, data, format.SendOptions{Namespace: namespace})
			require.NoError(t, err, name)
			require.Len(t, bad, 2, name)
			require.Contains(t, bad[0], "the value of the flag --namespace", name)
			require.Equal(t, all[i:i+1], rows, name)
		}
		_, _, err = read(t, name, data, format.SendOptions{Columns: format.Columns{Namespace: "team"}})
		require.ErrorContains(t, err, `column "team" does not exist`, name)
	}
}

// TestNamespacesThatNoColumnNames checks that a file without the column has the requested namespace,
// or the one without a name.
func TestNamespacesThatNoColumnNames(t *testing.T) {
	t.Parallel()
	type row struct {
		User uint32 `parquet:"user_id"`
		At   int64  `parquet:"at"`
	}
	growth := "growth"
	for name, data := range map[string][]byte{
		"x.csv": []byte("user_id,at\n7,1795175999\n"), "x.ndjson": []byte(`{"user_id":7,"at":1795175999}`),
		"x.parquet": columnOf(t, row{7, noon.Unix() - 1}),
	} {
		for want, namespace := range map[string]*string{"": nil, growth: &growth} {
			rows, bad, err := read(t, name, data, format.SendOptions{Namespace: namespace})
			require.NoError(t, err, name)
			require.Empty(t, bad, name)
			require.Equal(t, []format.SendRow{{User: 7, At: 1000 * (noon.Unix() - 1), Namespace: want}}, rows, name)
		}
	}
	_, bad, err := read(t, "x.csv", []byte("user_id,at,namespace\n7,1795175999,no name\n"), format.SendOptions{})
	require.NoError(t, err)
	require.Len(t, bad, 1)
	require.Contains(t, bad[0], `2: namespace: must be 1 to 64 letters`)
	// Writers that leave out null: nobody knows whether such a line is of the namespace that was named.
	some := []byte(`{"user_id":7,"at":1795175999}` + "\n" + `{"user_id":8,"at":1795175999,"namespace":"growth"}` + "\n")
	rows, bad, err := read(t, "x.ndjson", some, format.SendOptions{})
	require.NoError(t, err)
	require.Empty(t, bad)
	require.Equal(t, []string{"", growth}, []string{rows[0].Namespace, rows[1].Namespace})
	_, _, err = read(t, "x.ndjson", some, format.SendOptions{Namespace: &growth})
	require.ErrorContains(t, err, "line 1 lacks the field namespace, which other lines have")
}
