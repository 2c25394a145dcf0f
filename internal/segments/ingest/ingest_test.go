package ingest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

// The reasons of bad rows in the form that people read.
const (
	reasonNotID = "not a user id (0 to 4294967295)"
	reasonEmpty = "no user id"
	reasonQuote = "a quote is neither at the beginning nor at the end of a field"
)

func write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o644))
	return path
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(content)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.Bytes()
}

func zstandard(t *testing.T, content []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return z.EncodeAll(content, nil)
}

func idsOf(s *bitmap.Set) []uint32 {
	ids := []uint32{}
	for id := range s.Bitmap().All() {
		ids = append(ids, id)
	}
	return ids
}

// read reads the ids of one file; bad rows are an error.
func read(t *testing.T, in Input) ([]uint32, error) {
	t.Helper()
	r := NewReader(Config{})
	set, err := r.ReadIDs(t.Context(), []Input{in})
	if err != nil {
		return nil, err
	}
	return idsOf(set), r.Check()
}

func TestReadsEveryTextFormat(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, content string
		in                  Input
		want                []uint32
	}{
		{name: "text", file: "a.txt", content: "3\n1\n2\n", want: []uint32{1, 2, 3}},
		{name: "text, no line break at the end", file: "a.txt", content: "3\n1", want: []uint32{1, 3}},
		{name: "text, blank lines at the end", file: "a.txt", content: "3\n1\n\n\r\n", want: []uint32{1, 3}},
		{name: "text, CRLF", file: "a.txt", content: "3\r\n1\r\n", want: []uint32{1, 3}},
		{name: "text, BOM", file: "a.txt", content: "\xef\xbb\xbf3\n1\n", want: []uint32{1, 3}},
		{name: "text, header", file: "a.txt", content: "user_id\n3\n1\n", want: []uint32{1, 3}},
		{name: "text, spaces and zeros in front", file: "a.txt", content: "  3 \n007\n\t8\n", want: []uint32{3, 7, 8}},
		{name: "text, bounds of an id", file: "a.txt", content: "0\n4294967295\n00000000004294967294\n",
			want: []uint32{0, 4294967294, 4294967295}},
		{name: "text, the same id often", file: "a.txt", content: "5\n5\n5\n", want: []uint32{5}},
		{name: "empty file", file: "a.txt", content: "", want: []uint32{}},
		{name: "empty CSV with a column's name", file: "a.csv", in: Input{IDColumn: "user_id"}, want: []uint32{}},
		{name: "only a header", file: "a.csv", content: "user_id\n", want: []uint32{}},
		{name: "no extension, text", file: "ids", content: "3\n1\n", want: []uint32{1, 3}},
		{name: "no extension, CSV", file: "ids", content: "3,x\n1,y\n", want: []uint32{1, 3}},
		{name: "no extension, TSV", file: "ids", content: "3\tx\n1\ty\n", want: []uint32{1, 3}},
		{name: "no extension, NDJSON", file: "ids", content: `{"user_id":3}`, want: []uint32{3}},
		{name: "CSV without header", file: "a.csv", content: "3,x\n1,y\n", want: []uint32{1, 3}},
		{name: "CSV, header with user_id", file: "a.csv", content: "name,user_id\nx,3\ny,1\n", want: []uint32{1, 3}},
		{name: "CSV, header with another id", file: "a.csv", content: "name,customerId\nx,3\n", want: []uint32{3}},
		{name: "CSV without header, a word that ends in id", file: "a.csv", content: "3,paid\n1,valid\n",
			want: []uint32{1, 3}},
		{name: "CSV without header, a name of an id", file: "a.csv", content: "3,uid\n1,user\n", want: []uint32{1, 3}},
		{name: "CSV, header in capitals", file: "a.csv", content: "NAME,CUSTOMER ID\nx,3\n", want: []uint32{3}},
		{name: "CSV, column by name", file: "a.csv", content: "id,member\n9,3\n9,1\n", in: Input{IDColumn: "member"},
			want: []uint32{1, 3}},
		{name: "CSV, column by name in other case", file: "a.csv", content: "ID,Member\n9,3\n",
			in: Input{IDColumn: "member"}, want: []uint32{3}},
		{name: "CSV, column by number", file: "a.csv", content: "9,3\n9,1\n", in: Input{IDColumn: "2"},
			want: []uint32{1, 3}},
		{name: "CSV, column by number, header", file: "a.csv", content: "x,user_id\n9,3\n", in: Input{IDColumn: "2"},
			want: []uint32{3}},
		{name: "CSV, header said", file: "a.csv", content: "whatever,x\n3,y\n", in: Input{Header: format.HeaderYes},
			want: []uint32{3}},
		{name: "CSV, quotes", file: "a.csv", content: "\"user_id\",\"name\"\n\"3\",\"a \"\"b\"\", " +
			"c\"\n1,\"two\nlines\"\n\"2\",\"\"\n", want: []uint32{1, 2, 3}},
		{name: "CSV, quotes and CRLF", file: "a.csv", content: "user_id,name\r\n3,\"x\r\ny\"\r\n1,z\r\n",
			want: []uint32{1, 3}},
		{name: "CSV, BOM before a quoted header", file: "a.csv", content: "\xef\xbb\xbf\"user_id\"\n3\n",
			want: []uint32{3}},
		{name: "CSV, empty last column", file: "a.csv", content: "3,\n1,\n", want: []uint32{1, 3}},
		{name: "CSV, other delimiter", file: "a.csv", content: "3;x\n1;y\n", in: Input{Delimiter: ';'},
			want: []uint32{1, 3}},
		{name: "TSV", file: "a.tsv", content: "user_id\tname\n3\tx, y\n1\t\n", want: []uint32{1, 3}},
		{name: "NDJSON", file: "a.ndjson", content: "{\"user_id\": 3}\n{\"x\":{\"user_id\":[9,\"}\"]},\"user_id\":1}\n",
			want: []uint32{1, 3}},
		{name: "NDJSON, ids as strings", file: "a.jsonl", content: `{"user_id":"4294967295"}`,
			want: []uint32{4294967295}},
		{name: "NDJSON, other field", file: "a.ndjson", content: "{\"id\": 9, \"m\": 3}\n", in: Input{IDColumn: "m"},
			want: []uint32{3}},
		{name: "NDJSON, escaped name", file: "a.ndjson", content: `{"\u0075ser_id": 3}`, want: []uint32{3}},
	}
	for _, c := range cases {
		for suffix, pack := range map[string]func(*testing.T, []byte) []byte{
			"": func(_ *testing.T, b []byte) []byte { return b }, ".gz": gzipped, ".zst": zstandard,
		} {
			t.Run(c.name+suffix, func(t *testing.T) {
				t.Parallel()
				in := c.in
				in.Path = write(t, c.file+suffix, pack(t, []byte(c.content)))
				got, err := read(t, in)
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			})
		}
	}
}

func TestEveryBadRowIsNamed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file, content string
		in                  Input
		row                 int64
		value, reason       string
	}{
		{name: "word", file: "a.txt", content: "1\nabc\n", row: 2, value: "abc", reason: reasonNotID},
		{name: "word that is no header", file: "a.txt", content: "abc\n1\n", row: 1, value: "abc", reason: reasonNotID},
		{name: "header that is told not to be one", file: "a.txt", content: "user_id\n1\n",
			in: Input{Header: format.HeaderNo}, row: 1, value: "user_id", reason: reasonNotID},
		{name: "word that only ends like a name of an id", file: "a.csv", content: "abc,paid\n1,paid\n", row: 1,
			value: "abc", reason: reasonNotID},
		{name: "negative", file: "a.txt", content: "1\n-1\n", row: 2, value: "-1", reason: reasonNotID},
		{name: "plus sign", file: "a.txt", content: "+1\n", row: 1, value: "+1", reason: reasonNotID},
		{name: "too large", file: "a.txt", content: "4294967296\n", row: 1, value: "4294967296", reason: reasonNotID},
		{name: "2^64+1 does not wrap", file: "a.txt", content: "18446744073709551617\n", row: 1,
			value: "18446744073709551617", reason: reasonNotID},
		{name: "fraction", file: "a.txt", content: "1.0\n", row: 1, value: "1.0", reason: reasonNotID},
		{name: "exponent", file: "a.txt", content: "1e3\n", row: 1, value: "1e3", reason: reasonNotID},
		{name: "hexadecimal", file: "a.txt", content: "0x10\n", row: 1, value: "0x10", reason: reasonNotID},
		{name: "thousands", file: "a.txt", content: "1,000\n", row: 1, value: "1,000", reason: reasonNotID},
		{name: "two ids", file: "a.txt", content: "1 2\n", row: 1, value: "1 2", reason: reasonNotID},
		{name: "blank line inside", file: "a.txt", content: "1\n\n2\n", row: 2, value: "", reason: reasonEmpty},
		{name: "null byte", file: "a.txt", content: "1\x00\n", row: 1, value: "1\x00", reason: reasonNotID},
		{name: "full-width digits", file: "a.txt", content: "１\n", row: 1, value: "１", reason: reasonNotID},
		{name: "CSV, empty id", file: "a.csv", content: "1,x\n,y\n", row: 2, value: "", reason: reasonEmpty},
		{name: "CSV, bad id after a header", file: "a.csv", content: "user_id,n\n1,x\nNULL,y\n", row: 3, value: "NULL",
			reason: reasonNotID},
		{name: "CSV, too few columns", file: "a.csv", content: "1,x\n2\n", row: 2, value: "2",
			reason: "row has 1 columns, but the first row has 2"},
		{name: "CSV, too many columns", file: "a.csv", content: "1,x\n2,y,z\n", row: 2, value: "2,y,z",
			reason: "row has 3 columns, but the first row has 2"},
		{name: "CSV, quote in a field", file: "a.csv", content: "1,x\n2,a\"b\n", row: 2, value: "2,a\"b",
			reason: reasonQuote},
		{name: "CSV, text after a quote", file: "a.csv", content: "1,x\n2,\"a\"b\n", row: 2, value: "2,\"a\"b",
			reason: reasonQuote},
		{name: "CSV, quote never closed", file: "a.csv", content: "1,x\n2,\"abc\n", row: 2, value: "2,\"abc",
			reason: reasonQuote},
		{name: "CSV, row after a field of two lines", file: "a.csv", content: "1,\"x\ny\"\nbad,z\n", row: 3,
			value: "bad", reason: reasonNotID},
		{name: "CSV, blank line inside", file: "a.csv", content: "1,x\n\n2,y\n", row: 2, value: "",
			reason: reasonEmpty},
		{name: "NDJSON, fraction", file: "a.ndjson", content: `{"user_id":1.0}`, row: 1, value: "1.0",
			reason: reasonNotID},
		{name: "NDJSON, exponent", file: "a.ndjson", content: `{"user_id":1e3}`, row: 1, value: "1e3",
			reason: reasonNotID},
		{name: "NDJSON, beyond 2^53", file: "a.ndjson", content: `{"user_id":9007199254740993}`, row: 1,
			value: "9007199254740993", reason: reasonNotID},
		{name: "NDJSON, null", file: "a.ndjson", content: `{"user_id":null}`, row: 1, value: "null",
			reason: reasonNotID},
		{name: "NDJSON, absent", file: "a.ndjson", content: `{"USER_ID":1}`, row: 1, value: `{"USER_ID":1}`,
			reason: `field "user_id" is missing`},
		{name: "NDJSON, twice", file: "a.ndjson", content: `{"user_id":1,"user_id":2}`, row: 1,
			value: `{"user_id":1,"user_id":2}`, reason: `field "user_id" is given twice`},
		{name: "NDJSON, an array", file: "a.ndjson", content: `[1]`, row: 1, value: "[1]", reason: "line is not a JSON object"},
		{name: "NDJSON, cut off", file: "a.ndjson", content: "{\"user_id\":1}\n{\"user_id\":", row: 2,
			value: `{"user_id":`, reason: "line is not a JSON object"},
		{name: "NDJSON, empty string", file: "a.ndjson", content: `{"user_id":""}`, row: 1, value: "",
			reason: reasonEmpty},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.in.Path = write(t, c.file, []byte(c.content))
			_, err := read(t, c.in)
			var bad *BadRowsError
			require.ErrorAs(t, err, &bad)
			require.EqualValues(t, 1, bad.Count)
			require.Equal(t, []format.Bad{{File: c.in.Path, Row: c.row, Value: c.value, Reason: c.reason}}, bad.Samples)
		})
	}
}

func TestToleratesAsManyBadRowsAsAskedFor(t *testing.T) {
	t.Parallel()
	path := write(t, "a.txt", []byte("1\nx\n2\ny\n"))
	for tolerated, fails := range map[int64]bool{0: true, 1: true, 2: false, 3: false} {
		r := NewReader(Config{MaxBadRows: Tolerance{Rows: tolerated}})
		set, err := r.ReadIDs(t.Context(), []Input{{Path: path}})
		require.NoError(t, err)
		require.Equal(t, fails, r.Check() != nil, "tolerated: %d", tolerated)
		require.Equal(t, []uint32{1, 2}, idsOf(set))
		count, samples := r.BadRows()
		require.EqualValues(t, 2, count)
		require.Equal(t, "y", samples[1].Value)
		require.EqualValues(t, 2, r.Reports()[0].Bad)
		require.EqualValues(t, 2, r.Reports()[0].Rows)
	}
}

func TestInputsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	valid := gzipped(t, []byte(strings.Repeat("1\n2\n3\n", 10000)))
	zipped := zstandard(t, []byte(strings.Repeat("1\n2\n3\n", 10000)))
	cases := []struct {
		name, file string
		content    []byte
		in         Input
		want       string
	}{
		{name: "gzip cut off", file: "a.txt.gz", content: valid[:len(valid)-9], want: "gzip"},
		{name: "gzip damaged", file: "a.txt.gz", content: append(bytes.Clone(valid[:len(valid)-5]), 0, 0, 0, 0, 0),
			want: "gzip"},
		{name: "zstd cut off", file: "a.txt.zst", content: zipped[:len(zipped)-3], want: "zstd"},
		{name: "UTF-16", file: "a.txt", content: []byte("\xff\xfe1\x00\n\x00"), want: "UTF-16"},
		{name: "no such column", file: "a.csv", content: []byte("a,b\n1,2\n"), in: Input{IDColumn: "c"},
			want: `column "c" does not exist: the header is "a,b"`},
		{name: "no such column number", file: "a.csv", content: []byte("1,2\n"), in: Input{IDColumn: "3"},
			want: "column 3 does not exist: the first row has 2"},
		{name: "column twice", file: "a.csv", content: []byte("a,a\n1,2\n"), in: Input{IDColumn: "a"},
			want: `column "a" exists twice`},
		{name: "two columns that may be the id's", file: "a.csv", content: []byte("client_id,member_id\n1,2\n"),
			want: `columns "client_id" and "member_id" could both hold user ids`},
		{name: "column by name, no header", file: "a.csv", content: []byte("1,2\n"),
			in: Input{IDColumn: "a", Header: format.HeaderNo}, want: "without a header"},
		{name: "line without end", file: "a.txt", content: bytes.Repeat([]byte{'1'}, 3<<20),
			want: "a row has more than"},
		{name: "quote without end", file: "a.csv", content: append([]byte("1,\""), bytes.Repeat([]byte("a\n"),
			2<<20)...), want: "line 1: a row has more than"},
		{name: "not Parquet", file: "a.parquet", content: []byte("hello, world, hello"), want: "parquet"},
		{name: "not a bitmap", file: "a.roaring", content: []byte("hello, world"),
			want: "not a portable 32-bit roaring bitmap"},
		{name: "64-bit bitmap", file: "a.roaring",
			content: []byte("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x3a\x30\x00\x00"),
			want:    "not a portable 32-bit roaring bitmap"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.in.Path = write(t, c.file, c.content)
			_, err := read(t, c.in)
			var input *InputError
			require.ErrorAs(t, err, &input)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, c.in.Path)
		})
	}
	_, err := read(t, Input{Path: filepath.Join(t.TempDir(), "nothing-*.csv")})
	require.ErrorContains(t, err, "no file matches")
	_, err = read(t, Input{Path: filepath.Join(t.TempDir(), "nothing.csv")})
	require.ErrorIs(t, err, objects.ErrNotFound)
	_, err = read(t, Input{Path: t.TempDir()})
	require.ErrorContains(t, err, "is a directory")
}

func TestReadsBitmaps(t *testing.T) {
	t.Parallel()
	var s bitmap.Set
	s.Add(7)
	s.Add(1 << 31)
	raw := s.Bitmap().Bytes()
	for name, content := range map[string][]byte{"a.roaring": raw, "sniffed": raw, "a.roaring.gz": gzipped(t, raw),
		"b.zst": zstandard(t, raw)} {
		got, err := read(t, Input{Path: write(t, name, content)})
		require.NoError(t, err, name)
		require.Equal(t, []uint32{7, 1 << 31}, got, name)
	}
	_, err := read(t, Input{Path: write(t, "a.roaring", append(bytes.Clone(raw), 0))})
	require.ErrorContains(t, err, "1 extra bytes after the end")
}

func TestReadsLargeFilesInParallel(t *testing.T) {
	t.Parallel()
	const n = 110_000 // several blocks, as the ids are long
	var text, csv, quoted bytes.Buffer
	quoted.WriteString("name,user_id\n")
	for i := range n {
		id := uint32(i) * 61
		fmt.Fprintf(&text, "%020d\n", id)
		fmt.Fprintf(&csv, "%020d,x\r\n", id)
		fmt.Fprintf(&quoted, "\"a\n\"\"%d\",\"%020d\"\n", i, id)
	}
	require.Greater(t, text.Len(), 2*format.HeadBytes)
	want := new(bitmap.Set)
	for i := range n {
		want.Add(uint32(i) * 61)
	}
	for name, content := range map[string][]byte{"a.txt": text.Bytes(), "a.csv": csv.Bytes(), "q.csv": quoted.Bytes()} {
		for _, workers := range []int{1, 3} {
			r := NewReader(Config{Workers: workers})
			set, err := r.ReadIDs(t.Context(), []Input{{Path: write(t, name, content)}})
			require.NoError(t, err)
			require.NoError(t, r.Check())
			require.EqualValues(t, n, r.Reports()[0].Rows)
			require.Equal(t, want.Bitmap().SHA256(), set.Bitmap().SHA256(), "%s with %d workers", name, workers)
		}
	}
	broken := append(bytes.Clone(quoted.Bytes()), "\"x\",\"y\"\n"...)
	_, err := read(t, Input{Path: write(t, "b.csv", broken)})
	require.ErrorContains(t, err, fmt.Sprintf("b.csv:%d: \"y\"", 2*n+2))
}

func TestReadsTables(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a.csv": "user_id,segment\n3,new\n1,old\n2,new\n",
		"b.csv": "3,new\n1,\"old\"\n2,new\n",
		"c.tsv": "segment\tuser_id\nnew\t3\nold\t1\nnew\t2\n",
		"d.ndjson": "{\"user_id\":3,\"segment\":\"new\"}\n{\"segment\":\"\\u006fld\",\"user_id\":\"1\"}\n" +
			"{\"user_id\":2,\"segment\":\"new\"}\n",
	}
	for name, content := range files {
		r := NewReader(Config{})
		sets, err := r.ReadTable(t.Context(), []Input{{Path: write(t, name, []byte(content))}}, nil)
		require.NoError(t, err, name)
		require.NoError(t, r.Check(), name)
		require.Len(t, sets, 2)
		require.Equal(t, []uint32{2, 3}, idsOf(sets["new"]), name)
		require.Equal(t, []uint32{1}, idsOf(sets["old"]), name)
	}
	bad := map[string]string{
		"3,new\n1,odd\n":      `b.csv:2: "odd": segment "odd" must be one of the segments to build`,
		"3,new\n1,a b\n":      `b.csv:2: "a b": segment name "a b" must be`,
		"3,new\n1,\n":         `b.csv:2: "": segment or set name is empty`,
		"3,new\nx,new\n":      `b.csv:2: "x": not a user id`,
		"3,new\n1,new,9\n":    `b.csv:2: "1,new,9": row has 3 columns, but the first row has 2`,
		"3,new\n1,\"new\" \n": `a quote is neither at the beginning nor at the end of a field`,
	}
	for content, want := range bad {
		r := NewReader(Config{})
		_, err := r.ReadTable(t.Context(), []Input{{Path: write(t, "b.csv", []byte(content))}}, []string{"new"})
		require.NoError(t, err)
		require.ErrorContains(t, r.Check(), want)
	}
	r := NewReader(Config{})
	_, err := r.ReadTable(t.Context(), []Input{{Path: write(t, "a.txt", []byte("1\n"))}}, nil)
	require.ErrorContains(t, err, "a table needs two columns")
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "%d,s%d\n", i, i)
	}
	_, err = r.ReadTable(t.Context(), []Input{{Path: write(t, "a.csv", []byte(many.String()))}}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, r.Check(), "more than 255 different segments")
}

// parquetFile writes rows to a Parquet file with small row groups and pages.
func parquetFile[T any](t *testing.T, rows []T, options ...parquet.WriterOption) string {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, append(options, parquet.PageBufferSize(256),
		parquet.MaxRowsPerRowGroup(1000))...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return write(t, "a.parquet", b.Bytes())
}

func TestReadsParquetOfEveryIntegerType(t *testing.T) {
	t.Parallel()
	type int32s struct {
		UserID int32 `parquet:"user_id"`
	}
	type int64s struct {
		Other  string `parquet:"other"`
		UserID int64  `parquet:"user_id,delta"`
	}
	type dictionary struct {
		UserID int64 `parquet:"user_id,dict,zstd"`
	}
	type narrowDictionary struct {
		UserID uint32 `parquet:"user_id,dict,snappy"`
	}
	type uint32s struct {
		UserID uint32 `parquet:"user_id,gzip"`
	}
	type uint64s struct {
		UserID uint64 `parquet:"user_id"`
	}
	type nullable struct {
		UserID *int64 `parquet:"user_id,optional"`
	}
	type nested struct {
		User struct {
			ID int32 `parquet:"id"`
		} `parquet:"user"`
	}
	var a []int32s
	var b []int64s
	var c []dictionary
	var d []narrowDictionary
	var e []uint32s
	var f []uint64s
	var g []nullable
	var h []nested
	want := []uint32{}
	for i := range 5000 {
		id := int64(i) * 7
		want = append(want, uint32(id))
		a, b, c = append(a, int32s{int32(id)}), append(b, int64s{"x", id}), append(c, dictionary{id}, dictionary{id})
		d, e, f = append(d, narrowDictionary{uint32(id)}), append(e, uint32s{uint32(id)}),
			append(f, uint64s{uint64(id)})
		g = append(g, nullable{&id})
		var n nested
		n.User.ID = int32(id)
		h = append(h, n)
	}
	paths := map[string]Input{
		"int32": {Path: parquetFile(t, a)}, "int64": {Path: parquetFile(t, b)}, "dictionary": {Path: parquetFile(t, c)},
		"uint32 dictionary": {Path: parquetFile(t, d)}, "uint32": {Path: parquetFile(t, e)},
		"uint64":   {Path: parquetFile(t, f)},
		"nullable": {Path: parquetFile(t, g)}, "nested": {Path: parquetFile(t, h), IDColumn: "user.id"},
		"by number": {Path: parquetFile(t, b), IDColumn: "2"},
	}
	for name, in := range paths {
		got, err := read(t, in)
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}

	e[4999].UserID, d[4999].UserID, f[4999].UserID = 1<<32-1, 1<<32-1, 1<<32-1
	for name, path := range map[string]string{"uint32": parquetFile(t, e), "dictionary": parquetFile(t, d),
		"uint64": parquetFile(t, f)} {
		got, err := read(t, Input{Path: path})
		require.NoError(t, err, name)
		require.EqualValues(t, 1<<32-1, got[4999], name)
	}
	raw, err := os.ReadFile(parquetFile(t, a))
	require.NoError(t, err)
	got, err := read(t, Input{Path: write(t, "a.parquet.gz", gzipped(t, raw))})
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestParquetFaults(t *testing.T) {
	t.Parallel()
	type nullable struct {
		UserID *int64 `parquet:"user_id,optional"`
	}
	type uint64s struct {
		UserID uint64 `parquet:"user_id"`
	}
	type floats struct {
		UserID float64 `parquet:"user_id"`
	}
	type decimals struct {
		UserID int64 `parquet:"user_id,decimal(2:18)"`
	}
	type dates struct {
		UserID int32 `parquet:"user_id,date"`
	}
	type repeated struct {
		UserID []int64 `parquet:"user_id"`
	}
	var list []nullable
	for i := range int64(3000) {
		list = append(list, nullable{&i})
	}
	negative, large := int64(-1), int64(1)<<32
	list[5].UserID, list[1500].UserID, list[2999].UserID = nil, &negative, &large
	r := NewReader(Config{})
	path := parquetFile(t, list)
	set, err := r.ReadIDs(t.Context(), []Input{{Path: path}})
	require.NoError(t, err)
	require.Equal(t, []format.Bad{
		{File: path, Row: 6, Value: "null", Reason: reasonEmpty},
		{File: path, Row: 1501, Value: "-1", Reason: reasonNotID},
		{File: path, Row: 3000, Value: "4294967296", Reason: reasonNotID},
	}, r.Check().(*BadRowsError).Samples)
	require.EqualValues(t, 2997, set.Bitmap().Cardinality())

	_, err = read(t, Input{Path: parquetFile(t, []uint64s{{1 << 63}})})
	require.ErrorContains(t, err, `"9223372036854775808": not a user id`)
	for _, path := range []string{parquetFile(t, []floats{{1}}), parquetFile(t, []decimals{{1}}),
		parquetFile(t, []dates{{1}})} {
		_, err = read(t, Input{Path: path})
		require.ErrorContains(t, err, "user ids must be 32-bit or 64-bit integers, decimals without a fraction, or "+
			"strings of digits")
	}
	_, err = read(t, Input{Path: parquetFile(t, []repeated{{[]int64{1}}})})
	require.ErrorContains(t, err, "must hold a single value per row")
	_, err = read(t, Input{Path: parquetFile(t, list), IDColumn: "nope"})
	require.ErrorContains(t, err, `column "nope" does not exist: the file has the columns "user_id"`)
}

func TestReadsParquetTables(t *testing.T) {
	t.Parallel()
	type plain struct {
		UserID  int64  `parquet:"user_id"`
		Segment string `parquet:"segment"`
	}
	type nullable struct {
		UserID  int32   `parquet:"user_id"`
		Segment *string `parquet:"segment,optional,dict"`
	}
	var a []plain
	var b []nullable
	names := []string{"new", "old", "vip"}
	for i := range 5000 {
		a = append(a, plain{int64(i), names[i%3]})
		b = append(b, nullable{int32(i), &names[i%3]})
	}
	for _, path := range []string{parquetFile(t, a), parquetFile(t, b)} {
		r := NewReader(Config{})
		sets, err := r.ReadTable(t.Context(), []Input{{Path: path}}, nil)
		require.NoError(t, err)
		require.NoError(t, r.Check())
		require.EqualValues(t, 1667, sets["new"].Bitmap().Cardinality())
		require.True(t, sets["vip"].Bitmap().Contains(2))
		require.False(t, sets["vip"].Bitmap().Contains(3))
	}
	odd := "not a name"
	b[10].Segment, b[2500].Segment = nil, &odd
	path := parquetFile(t, b)
	r := NewReader(Config{})
	_, err := r.ReadTable(t.Context(), []Input{{Path: path}}, nil)
	require.NoError(t, err)
	bad := r.Check().(*BadRowsError)
	require.EqualValues(t, 2, bad.Count)
	require.Equal(t, format.Bad{File: path, Row: 11, Value: "null", Reason: "no segment"}, bad.Samples[0])
	require.EqualValues(t, 2501, bad.Samples[1].Row)
}
