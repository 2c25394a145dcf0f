package ingest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"capper/internal/segments/ingest/format"
)

// readAll reads one file and returns the ids, the report and the error about bad rows.
func readAll(t *testing.T, in Input, cfg Config) ([]uint32, FileReport, error) {
	t.Helper()
	r := NewReader(cfg)
	set, err := r.ReadIDs(t.Context(), []Input{in})
	require.NoError(t, err)
	return idsOf(set), r.Reports()[0], r.Check()
}

func mark(t *testing.T, s string) format.Mark {
	t.Helper()
	m, err := format.ParseMark(s)
	require.NoError(t, err)
	return m
}

// TestReadsWhatPostgresCopies reads 20,000 rows that PostgreSQL 15 wrote with COPY, as text and as
// CSV. Fields begin with a quote, contain tabs, line breaks and backslashes, or are null.
func TestReadsWhatPostgresCopies(t *testing.T) {
	t.Parallel()
	text, report, err := readAll(t, Input{Path: "testdata/postgres-copy.tsv.gz"}, Config{})
	require.NoError(t, err)
	require.EqualValues(t, 20_000, report.Rows)
	require.Nil(t, report.Multiline)
	csv, report, err := readAll(t, Input{Path: "testdata/postgres-copy.csv.gz"}, Config{})
	require.NoError(t, err)
	require.Equal(t, text, csv)
	require.Len(t, text, 20_000)
	require.EqualValues(t, 2857, report.Multiline.Rows, "the notes of two lines")
	require.EqualValues(t, 2, report.Multiline.Longest)

	r := NewReader(Config{})
	sets, err := r.ReadTable(t.Context(), []Input{{Path: "testdata/postgres-copy.tsv.gz", SegmentColumn: "3"}}, nil)
	require.NoError(t, err)
	require.NoError(t, r.Check())
	require.EqualValues(t, 20_000, sets["new"].Bitmap().Cardinality()+sets["active"].Bitmap().Cardinality()+
		sets["vip"].Bitmap().Cardinality())
	require.True(t, sets["active"].Bitmap().Contains(453), "the row with a null before the segment")
}

// TestTSVLosesNoRow reads several MiB in the format of MySQL's -B and of Hive, in blocks that end
// anywhere.
func TestTSVLosesNoRow(t *testing.T) {
	t.Parallel()
	const rows = 50_000
	notes := map[string][]string{
		"mysql -B":           {`"quoted`, `"all"`, `two\nlines`, `a\tb`, `C:\\`, `\\\\`, `NULL`, ``, `it's "so"`},
		"mysql INTO OUTFILE": {`"quoted`, "two\\\nlines", "a\\\tb", `C:\\`, "\\\n\\\n", `\N`, `\0`, `x\\\\\` + "\n"},
		"hive, escaped":      {`"quoted`, "two\\\n99\\\tactive", "a\\\tb", `\\`, `\N`},
	}
	for name, list := range notes {
		for _, compact := range []bool{false, true} {
			var b bytes.Buffer
			for i := range rows {
				fmt.Fprintf(&b, "%d\t%s\tactive", i*5, list[i%len(list)])
				if !compact {
					fmt.Fprint(&b, strings.Repeat(" ", i%17))
				}
				b.WriteByte('\n')
			}
			in := Input{Path: write(t, "a.tsv", b.Bytes())}
			for _, workers := range []int{1, 3} {
				ids, report, err := readAll(t, in, Config{Workers: workers})
				require.NoError(t, err, name)
				require.EqualValues(t, rows, report.Rows, name)
				require.Len(t, ids, rows)
				require.EqualValues(t, (rows-1)*5, ids[rows-1])
			}
			r := NewReader(Config{MaxBadRows: Tolerance{Rows: rows}})
			sets, err := r.ReadTable(t.Context(), []Input{{Path: in.Path, SegmentColumn: "3"}}, []string{"active"})
			require.NoError(t, err)
			require.EqualValues(t, rows, sets["active"].Bitmap().Cardinality(), name)
		}
	}
}

// TestQuotesAndEscapesAreOptions checks that the options override the defaults of a format.
func TestQuotesAndEscapesAreOptions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, content string
		quote, escape       string
		delimiter           byte
		want                []uint32
		bad                 int64
	}{
		{name: "TSV with quotes, asked for", file: "a.tsv", content: "1\t\"a\tb\"\n2\t\"c\nd\"\n\"3\"\t\"e " +
			"\"\"f\"\"\"\n", quote: `"`, want: []uint32{1, 2, 3}},
		{name: "TSV with quotes, not asked for", file: "a.tsv", content: "1\t\"a\n\"2\"\t\"\n3\tb\n",
			want: []uint32{1, 3}, bad: 1},
		{name: "TSV, single quotes", file: "a.tsv", content: "1\t'a\tb'\n2\tx\n", quote: "'", want: []uint32{1, 2}},
		{name: "TSV without escapes", file: "a.tsv", content: "1\tC:\\\n2\tD:\\\n", escape: "none",
			want: []uint32{1, 2}},
		{name: "TSV, a backslash that escapes the line break", file: "a.tsv", content: "0\tx\n1\tC:\\\n2\tD:\n3\tx\n",
			want: []uint32{0, 3}, bad: 2},
		{name: "Hive's own files", file: "000000_0", content: "1\x01\"a\n2\x01\\N\n3\x01b\\\x01c\n", delimiter: 1,
			want: []uint32{1, 2, 3}},
		{name: "TSV, an id in octal", file: "a.tsv", content: "1\tx\n\\062\tx\n\\3\tx\n", want: []uint32{1}, bad: 2},
		{name: "CSV without quotes", file: "a.csv", content: "1,\"a\n2,b\"\n", quote: "none", want: []uint32{1, 2}},
		{name: "CSV with escapes in quotes", file: "a.csv", content: "1,\"a \\\"b\\\", c\"\n2,\"\\\\\"\n", escape: `\`,
			want: []uint32{1, 2}},
		{name: "CSV with escapes outside quotes", file: "a.csv", content: "1,a\\,b\n2,a\\\nb\n3,\\\"\n", escape: `\`,
			want: []uint32{1, 2, 3}},
		{name: "CSV with escapes, nulls", file: "a.csv", content: "1,\\N\n\\N,b\n", escape: `\`, want: []uint32{1},
			bad: 1},
		{name: "CSV, the quote said to be the escape", file: "a.csv", content: "1,\"a\"\"b\"\n", escape: `"`,
			want: []uint32{1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := Input{Path: write(t, c.file, []byte(c.content))}
			if c.delimiter != 0 {
				in.Format, in.Delimiter = tsv, Delimiter(c.delimiter)
			}
			if c.quote != "" {
				in.Quote = mark(t, c.quote)
			}
			if c.escape != "" {
				in.Escape = mark(t, c.escape)
			}
			ids, report, err := readAll(t, in, Config{})
			require.Equal(t, c.want, ids)
			require.Equal(t, c.bad, report.Bad)
			require.Equal(t, c.bad > 0, err != nil)
		})
	}
	for _, bad := range []string{"", "ab", "7", "\t", "\n", " "} {
		_, err := format.ParseMark(bad)
		require.Error(t, err, "%q", bad)
	}
	_, err := read(t, Input{Path: write(t, "a.csv", []byte("1,2\n")), Quote: mark(t, ",")})
	require.ErrorContains(t, err, `the delimiter ',' must differ from the quote and the escape character`)
	_, err = read(t, Input{Path: write(t, "a.tsv", []byte("\"1\"\tx\n2\ty\n"))})
	require.ErrorContains(t, err, "the file is read without quotes")
	_, err = read(t, Input{Path: write(t, "a.tsv", []byte(strings.Repeat("1\tC:\\\n", 20_000)))})
	require.ErrorContains(t, err, "line 1: a field covers several lines that look like separate rows")
	_, err = read(t, Input{Path: write(t, "a.tsv", []byte("\\N\tx\n2\ty\n"))})
	require.ErrorContains(t, err, `a.tsv:1: "\\N": no user id`)
}

// TestAStrayQuoteCountsTheRowsThatItSwallows checks that the rows that a stray quote encloses are
// counted as bad or that the file is rejected, wherever the quote closes.
func TestAStrayQuoteCountsTheRowsThatItSwallows(t *testing.T) {
	t.Parallel()
	csv := func(at int, opening string, until int, closing string) []byte {
		var b bytes.Buffer
		b.WriteString("user_id,name\n")
		for i := range 80_000 {
			switch i {
			case at:
				fmt.Fprintf(&b, "%d,%sx\n", i, opening)
			case until:
				fmt.Fprintf(&b, "%d,x%s\n", i, closing)
			default:
				fmt.Fprintf(&b, "%d,x\n", i)
			}
		}
		return b.Bytes()
	}
	for name, c := range map[string]struct {
		content []byte
		bad     int64
	}{
		"closed at the end of a field":  {csv(10_000, `"`, 70_000, `"`), 60_001},
		"closed inside a field":         {csv(10_000, `"`, 70_000, `"y`), 60_001},
		"one row more than a note has":  {csv(10_000, `"`, 10_004, `"`), 5},
		"the next row, inside a field":  {csv(10_000, `"`, 10_001, `"y`), 2},
		"never closed, to the file end": {csv(20_000, `"`, -1, ""), 60_000},
	} {
		ids, report, err := readAll(t, Input{Path: write(t, "a.csv", c.content)}, Config{})
		require.Error(t, err, name)
		require.Equal(t, c.bad, report.Bad, name)
		require.EqualValues(t, 80_000-c.bad, len(ids), name)
		require.Equal(t, c.bad, err.(*BadRowsError).Count, name)
		require.Equal(t, c.bad, err.(*BadRowsError).Samples[0].Lines, name)
		require.ErrorContains(t, err, fmt.Sprintf("(%d lines)", c.bad), name)
	}
	// Up to three lines that read as rows may be an address or a note: the record
	// is one, and named.
	for until, lines := range map[int]int64{10_001: 2, 10_003: 4} {
		ids, report, err := readAll(t, Input{Path: write(t, "a.csv", csv(10_000, `"`, until, `"`))}, Config{})
		require.NoError(t, err)
		require.EqualValues(t, 80_000-lines+1, len(ids))
		require.Equal(t, &format.Multiline{Rows: 1, Lines: lines, Longest: lines, At: 10_002}, report.Multiline)
	}
	_, err := read(t, Input{Path: write(t, "a.csv", append(csv(10, `"`, -1, ""), bytes.Repeat([]byte("7,x\n"),
		1<<18)...))})
	require.ErrorContains(t, err, "a row has more than 1048576 bytes, or a quote is never closed")

	// The same in the header, which is no row.
	for header, want := range map[string]string{
		"\"user_id\n":          "the header: a quote is neither at the beginning nor at the end of a field",
		"\"user_id\n1\n2\"\n3": "the header: a field covers several lines that look like separate rows",
	} {
		_, err := read(t, Input{Path: write(t, "a.csv", []byte(header)), Header: format.HeaderYes})
		require.ErrorContains(t, err, want)
	}
}

// TestFieldsOfManyLinesAreNamed checks that rows with valid line breaks are accepted and reported.
func TestFieldsOfManyLinesAreNamed(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("note,user_id\n")
	for i := range 50_000 {
		lines := 1 + i%3
		if i == 40_000 {
			lines = 500
		}
		fmt.Fprintf(&b, "\"%sthe end\",%d\n", strings.Repeat("Dear all,\n", lines-1), i)
	}
	for _, workers := range []int{1, 3} {
		_, report, err := readAll(t, Input{Path: write(t, "a.csv", b.Bytes())}, Config{Workers: workers})
		require.NoError(t, err)
		require.EqualValues(t, 50_000, report.Rows)
		require.Equal(
			t,
			&format.Multiline{Rows: 33_333, Lines: 83_332 + 498, Longest: 500, At: 80_001},
			report.Multiline,
		)
	}
}

// TestAddressesAreRows checks that addresses whose second line begins with a number and a comma are
// accepted, and so are notes with a short list.
func TestAddressesAreRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header, row string
		lines       int64
	}{
		"house number":            {"user_id,address", "%d,\"c/o Dupont\n12, Rue X\"", 2},
		"house number, CRLF":      {"user_id,address", "%d,\"c/o Dupont\r\n12, Rue X\"\r", 2},
		"no header":               {"1,x", "%d,\"c/o Dupont\n12, Rue X\"", 2},
		"three columns":           {"user_id,address,city", "%d,\"c/o Dupont\n12, Rue X, 2e\nParis\",Paris", 3},
		"list of three":           {"user_id,note", "%d,\"ordered:\n3, apples\n2, pears\n10, plums\nthanks\"", 5},
		"in front of the user id": {"address,user_id", "\"c/o Dupont\nRue X, 12\nParis\",%d", 3},
	} {
		var b bytes.Buffer
		fmt.Fprintln(&b, c.header)
		for i := range 60_000 {
			fmt.Fprintf(&b, c.row+"\n", i+2)
		}
		ids, report, err := readAll(t, Input{Path: write(t, "a.csv", b.Bytes())}, Config{Workers: 2})
		require.NoError(t, err, name)
		require.Equal(t, &format.Multiline{Rows: 60_000, Lines: 60_000 * c.lines, Longest: c.lines, At: 2},
			report.Multiline, name)
		require.EqualValues(t, 60_001, ids[len(ids)-1], name)
		require.NotContains(t, ids, uint32(0), name)
		require.EqualValues(t, len(ids), report.Rows, name)
	}
}

func TestBlankLinesAtTheEnd(t *testing.T) {
	t.Parallel()
	million := strings.Repeat("1234567\n", 1<<17) // exactly a block
	for name, c := range map[string]struct {
		file, content string
		bad           int64
	}{
		"text":                                {"a.txt", "1\n\n\n", 0},
		"text, after a whole block":           {"a.txt", million + "\n\n", 0},
		"text, blank lines across blocks":     {"a.txt", million[:1<<20-8] + "7\n\n\n\n\n\n\n\n\n\n\n\n\n", 0},
		"text, then more":                     {"a.txt", million[:1<<20-8] + "7\n\n\n\n\n\n\n\n\n5\n", 8},
		"NDJSON":                              {"a.ndjson", "{\"user_id\":1}\n\n\n", 0},
		"CSV of two columns":                  {"a.csv", "1,x\n\n\n", 0},
		"CSV of one column":                   {"a.csv", "1\n2\n\n\n", 2},
		"CSV of one column, CRLF":             {"a.csv", "user_id\r\n1\r\n\r\n", 1},
		"CSV of one column, no end":           {"a.csv", "1\n\n2", 1},
		"CSV of one column, across blocks":    {"a.csv", million[:1<<20-8] + "7\n\n\n\n\n\n\n\n\n\n\n\n\n", 12},
		"TSV of one column":                   {"a.tsv", "1\n\n", 1},
		"TSV, an escaped line break, a blank": {"a.tsv", strings.Repeat("1\tx\n", 1<<18-2) + "1\tx\\\n\n2\tx\n", 0},
	} {
		_, report, err := readAll(t, Input{Path: write(t, c.file, []byte(c.content))}, Config{})
		require.Equal(t, c.bad, report.Bad, name)
		require.Equal(t, c.bad > 0, err != nil, name)
	}
}

// TestAFileWithoutAGoodRowIsRefused checks that a file with only bad rows is rejected, however many
// bad rows are allowed.
func TestAFileWithoutAGoodRowIsRefused(t *testing.T) {
	t.Parallel()
	good := write(t, "good.txt", []byte(strings.Repeat("1\n2\n", 50_000)))
	for name, content := range map[string]string{
		"error.txt":  "Internal Server Error\n",
		"sql.txt":    "ERROR 1054 (42S22): Unknown column 'id' in user_id\n",
		"null.csv":   "user_id\n" + strings.Repeat("NULL\n", 60_000),
		"pretty.ids": "[\n {\"user_id\": 1}\n]\n",
	} {
		for _, tolerated := range []Tolerance{{}, {Rows: 1 << 40}, {Share: 1}} {
			path := write(t, name, []byte(content))
			r := NewReader(Config{MaxBadRows: tolerated})
			_, err := r.ReadIDs(t.Context(), []Input{{Path: good}, {Path: path}})
			require.NoError(t, err)
			var bad *BadRowsError
			require.ErrorAs(t, r.Check(), &bad, name)
			require.Len(t, bad.Files, 1)
			require.Equal(t, path, bad.Files[0].File)
			require.ErrorContains(t, bad, path+": all ")
		}
	}
	for name, content := range map[string]string{"empty.txt": "", "header.csv": "user_id\n",
		"two.tsv": "name\tuser_id\r\n"} {
		_, report, err := readAll(t, Input{Path: write(t, name, []byte(content))}, Config{})
		require.NoError(t, err, "an empty part of an export is told by its %d rows", report.Rows)
	}
}

func TestFilesOfOtherKindsAreNamed(t *testing.T) {
	t.Parallel()
	body := "\x00\x01\x02" + strings.Repeat("1\n2\n", 1000)
	for magic, want := range map[string]string{
		"BZh91AY&SY":                    "bzip2",
		"\xfd7zXZ\x00":                  "xz",
		"PK\x03\x04\x14\x00":            "zip",
		"ORC":                           "ORC",
		"Obj\x01":                       "Avro",
		"ARROW1\x00\x00":                "Arrow",
		"\xff\xff\xff\xff\x10":          "Arrow stream",
		"\x04\x22\x4d\x18":              "lz4",
		"\xff\x06\x00\x00sNaPpY":        "snappy",
		"%PDF-1.7\n":                    "PDF",
		"SQLite format 3\x00":           "SQLite",
		"<!DOCTYPE html>\n<html>":       "HTML page",
		"\n  <HTML lang=\"en\">":        "HTML page",
		"<?xml version=\"1.0\"?><Error": "XML document",
		"<Error><Code>AccessDenied":     "XML or HTML",
	} {
		for _, file := range []string{"a.txt", "a.csv", "a.tsv", "a.ndjson", "a", "a.roaring", "a.bz2"} {
			for _, pack := range []func(*testing.T, []byte) []byte{func(_ *testing.T, b []byte) []byte { return b },
				gzipped} {
				path := write(t, file, pack(t, []byte(magic+body)))
				_, err := read(t, Input{Path: path})
				var fault *InputError
				require.ErrorAs(t, err, &fault, "%q in %s", magic, file)
				require.ErrorContains(t, err, want)
				require.ErrorContains(t, err, path+": the file is")
			}
		}
	}
	_, err := read(t, Input{Path: write(t, "a.csv.gz", gzipped(t, gzipped(t, []byte("1\n"))))})
	require.ErrorContains(t, err, "compressed twice")
	_, err = read(t, Input{Path: write(t, "a.csv", []byte("PAR1"+body))})
	require.ErrorContains(t, err, "the file is a Parquet file: give its format")
	for name, content := range map[string]string{"a.csv": "ORC,user_id\nx,5\n", "b.csv": "BZh,user_id\nx,5\n",
		"c.csv": "FEA1 PAR1,user_id\nxé,5\n"} {
		ids, err := read(t, Input{Path: write(t, name, []byte(content))})
		require.NoError(t, err)
		require.Equal(t, []uint32{5}, ids)
	}
}

func TestTolerances(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Tolerance{
		"0": {}, "500": {Rows: 500}, "0.1%": {Share: 0.001}, "100%": {Share: 1}, "0%": {}, "2 %": {Share: 0.02},
	} {
		got, err := parseTolerance(text)
		require.NoError(t, err, text)
		require.InDelta(t, want.Share, got.Share, 1e-12)
		require.Equal(t, want.Rows, got.Rows)
	}
	for _, text := range []string{"", "%", "-1", "3.7", "101%", "-1%", "x", "NaN%", "1e3", "0.1"} {
		_, err := parseTolerance(text)
		require.Error(t, err, text)
	}

	// A share holds for each file: many good rows of one do not pay for another.
	large := write(t, "large.txt", []byte(strings.Repeat("1\n2\n", 100_000)+strings.Repeat("x\n", 150)))
	small := write(t, "small.txt", []byte(strings.Repeat("3\n", 1000)+"x\ny\n"))
	check := func(tolerated string, paths ...string) error {
		tolerance, err := parseTolerance(tolerated)
		require.NoError(t, err)
		r := NewReader(Config{MaxBadRows: tolerance})
		for _, path := range paths {
			_, err := r.ReadIDs(t.Context(), []Input{{Path: path}})
			require.NoError(t, err)
		}
		return r.Check()
	}
	require.NoError(t, check("0.1%", large))
	err := check("0.1%", large, small)
	require.ErrorContains(t, err, "152 bad rows, 0.1% of a file's rows are tolerated\n  "+small+
		": 2 of 1002 rows are bad\n")
	require.ErrorContains(t, err, small+":1001: \"x\"", "both files are among the samples")
	require.ErrorContains(t, err, "… and 140 more")
	require.NoError(t, check("0.2%", large, small))
	require.NoError(t, check("152", large, small))
	require.Error(t, check("151", large, small))
}

// TestHandsOutEveryBadRow checks that Config.BadRows receives every bad row in full length.
func TestHandsOutEveryBadRow(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	for i := range 200_000 {
		if i%4 == 0 {
			fmt.Fprintf(&b, "%d-%s\n", i, strings.Repeat("é", 50))
		} else {
			fmt.Fprintf(&b, "%d\n", i)
		}
	}
	path := write(t, "a.txt", b.Bytes())
	var mu sync.Mutex
	handed := map[int64]format.Bad{}
	r := NewReader(Config{Workers: 3, BadRows: func(list []format.Bad) {
		mu.Lock()
		defer mu.Unlock()
		for _, row := range list {
			handed[row.Row] = row
		}
	}})
	_, err := r.ReadIDs(t.Context(), []Input{{Path: path}})
	require.NoError(t, err)
	require.Len(t, handed, 50_000)
	require.Equal(t, format.Bad{File: path, Row: 199_997, Value: "199996-" + strings.Repeat("é", 50),
		Reason: reasonNotID}, handed[199_997])
	_, samples := r.BadRows()
	require.Len(t, samples, maxSamples)
	require.Equal(t, "0-"+strings.Repeat("é", 31)+"…", samples[0].Value, "whole characters")
}

// TestPostgresFixture checks the content of the fixture.
func TestPostgresFixture(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/postgres-copy.tsv.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	raw, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, 20_000, bytes.Count(raw, []byte{'\n'}))
	require.Greater(t, bytes.Count(raw, []byte("\t\"")), 5000, "fields that begin with a quote")
}
