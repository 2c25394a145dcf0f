package ingest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/segments/ingest/format"
	"capper/internal/segments/segmentstest"
)

// idOf returns the id of a kind that stands for a dense id.
func idOf(kind ids.Kind, dense uint32) string {
	switch kind {
	case ids.UUID:
		return fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", dense)
	case ids.Uint64:
		return strconv.FormatUint(uint64(dense)*1_000_003+1<<40, 10)
	}
	return fmt.Sprintf("user %d@x.com", dense)
}

// TestEveryKindBuildsTheSameUsers maps the ids of a whole plan one to one, and compares the users of all segments and
// sets with those of the build with dense ids.
func TestEveryKindBuildsTheSameUsers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (list []uint32) {
		for range n {
			list = append(list, random.Uint32N(5000))
		}
		return list
	}
	lists := [][]uint32{draw(1500), draw(2000), draw(900), draw(3000), draw(1200)}
	plan := func(folder string, id func(uint32) string) *Plan {
		rows := func(name string, list []uint32, more func(i int) string) string {
			var b strings.Builder
			if more != nil {
				b.WriteString("user_id,name\n")
			}
			for i, v := range list {
				b.WriteString(id(v))
				if more != nil {
					b.WriteString("," + more(i))
				}
				b.WriteByte('\n')
			}
			return testFile(t, folder, name, b.String())
		}
		return &Plan{
			Segments: []Definition{{Name: "vip", Inputs: inputs(rows("vip.txt", lists[0], nil))},
				{Name: "rest", Union: []string{"everyone"}, Minus: []string{"vip"}}},
			Sets: []Definition{
				{Name: "everyone", Inputs: inputs(rows("all.txt", lists[1], nil), rows("more.txt", lists[2], nil))},
				{Name: "out", Publish: true, Intersect: []string{"everyone", "vip"}},
				{Name: "tz/Europe/Berlin", Publish: true, Inputs: inputs(rows("berlin.txt", lists[0][:9], nil))},
			},
			Tables: inputs(rows("table.csv", lists[3],
				func(i int) string { return []string{"vip", "out", "everyone"}[i%3] })),
			SetTables: []SetTable{{Prefix: "tz/", Inputs: inputs(rows("zones.csv", lists[4],
				func(i int) string { return []string{"Europe/Berlin", "Asia/Singapore"}[i%2] }))}},
			Precedence: true,
		}
	}
	itself := func(v uint32) string { return strconv.FormatUint(uint64(v), 10) }
	dense, err := Run(t.Context(), plan(t.TempDir(), itself), Config{}, quiet)
	require.NoError(t, err)
	for _, kind := range []ids.Kind{ids.Uint64, ids.UUID, ids.Text} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			scheme := ids.New(kind, segmentstest.Key(1))
			result, err := Run(t.Context(), plan(t.TempDir(), func(v uint32) string { return idOf(kind, v) }),
				Config{Scheme: scheme}, quiet)
			require.NoError(t, err)
			require.Equal(t, scheme, result.Candidate.Scheme)
			all := map[uint32]bool{}
			for _, list := range lists {
				for _, v := range list {
					all[v] = true
				}
			}
			require.EqualValues(t, len(all), result.Candidate.Dictionary.Len())
			mapped := func(b *bitmap.Bitmap) []uint32 {
				var numbers []uint32
				for v := range b.All() {
					image, err := scheme.Parse([]byte(idOf(kind, v)))
					require.NoError(t, err)
					n, ok := result.Candidate.Dictionary.Number(image)
					require.True(t, ok)
					numbers = append(numbers, n)
				}
				slices.Sort(numbers)
				return numbers
			}
			require.Equal(t, dense.Candidate.Names, result.Candidate.Names)
			for i, b := range dense.Candidate.Bitmaps {
				require.Equal(t, mapped(b), result.Candidate.Bitmaps[i].IDs(), dense.Candidate.Names[i])
			}
			require.Len(t, result.Candidate.Sets, len(dense.Candidate.Sets))
			for i, s := range dense.Candidate.Sets {
				require.Equal(t, s.Name, result.Candidate.Sets[i].Name)
				require.Equal(t, mapped(s.Bitmap), result.Candidate.Sets[i].Bitmap.IDs(), s.Name)
			}
			for i, f := range dense.Files {
				require.Equal(t, f.Rows, result.Files[i].Rows)
				require.Equal(t, f.DistinctIDs, result.Files[i].DistinctIDs, f.File)
			}
		})
	}
}

// parquetOf returns a Parquet file with one column.
func parquetOf[T any](t *testing.T, rows []T) string {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return file.String()
}

type (
	stringRow struct {
		ID string `parquet:"user_id,dict"`
	}
	optionalRow struct {
		ID *string `parquet:"user_id,optional"`
	}
	uuidRow struct {
		ID [16]byte `parquet:"user_id,uuid"`
	}
	fixedRow struct {
		ID [16]byte `parquet:"user_id"`
	}
	signedRow struct {
		ID int64 `parquet:"user_id"`
	}
	unsignedRow struct {
		ID uint64 `parquet:"user_id"`
	}
)

// run builds one segment from a file.
func runOne(t *testing.T, kind ids.Kind, name, content string, change ...func(*Input)) (*Result, error) {
	t.Helper()
	in := Input{Path: testFile(t, t.TempDir(), name, content)}
	for _, c := range change {
		c(&in)
	}
	p := &Plan{Segments: []Definition{{Name: "all", Inputs: []Input{in}}}}
	return Run(t.Context(), p, Config{Scheme: ids.New(kind, segmentstest.Key(1))}, quiet)
}

func TestEveryFormatTakesIDs(t *testing.T) {
	t.Parallel()
	const a, b = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab", "018f3c4e-7a1b-7c3d-9e5f-0123456789ac"
	rawA, rawB := raw16(t, a), raw16(t, b)
	upper := strings.ToUpper(a)
	strs := []stringRow{{a}, {upper}, {b}}
	null := []optionalRow{{&strs[0].ID}, {&strs[2].ID}}
	cases := map[string]struct {
		kind    ids.Kind
		name    string
		content string
		want    []string
	}{
		"uuid in text": {ids.UUID, "x.txt",
			" " + a + "\r\n{" + upper + "}\nurn:uuid:" + b + "\n", []string{a, b}},
		"uuid in CSV": {ids.UUID, "x.csv",
			"name,user_id\n\"x, y\"," + a + "\nz,\"" + b + "\"\n", []string{a, b}},
		"uuid without a header":   {ids.UUID, "x.csv", a + ",x\n" + b + ",y\n", []string{a, b}},
		"uuid in TSV":             {ids.UUID, "x.tsv", "user_id\tname\n" + a + "\tx\n" + b + "\ty\n", []string{a, b}},
		"uuid in NDJSON":          {ids.UUID, "x.ndjson", `{"user_id":"` + a + `"}` + "\n" + `{"user_id":"\u0030` + b[1:] + `"}` + "\n", []string{a, b}},
		"uuid in Parquet strings": {ids.UUID, "x.parquet", parquetOf(t, strs), []string{a, b}},
		"uuid with nulls":         {ids.UUID, "x.parquet", parquetOf(t, null), []string{a, b}},
		"uuid in Parquet": {ids.UUID, "x.parquet",
			parquetOf(t, []uuidRow{{rawA}, {rawB}, {rawA}}), []string{a, b}},
		"uuid in Parquet bytes": {ids.UUID, "x.parquet", parquetOf(t, []fixedRow{{rawA}, {rawB}}), []string{a, b}},
		"uint64 in text": {ids.Uint64, "x.txt",
			"0\n18446744073709551615\n", []string{"0", "18446744073709551615"}},
		"uint64 in CSV": {ids.Uint64, "x.csv", "n,user_id\nx,\"7\"\ny,18446744073709551615\n",
			[]string{"18446744073709551615", "7"}},
		"uint64 in TSV": {ids.Uint64, "x.tsv", "user_id\tn\n7\tx\n18446744073709551615\ty\n",
			[]string{"18446744073709551615", "7"}},
		"uint64 in NDJSON": {ids.Uint64, "x.ndjson", `{"user_id":18446744073709551615}` + "\n" + `{"user_id":"7"}` + "\n",
			[]string{"18446744073709551615", "7"}},
		"uint64 in Parquet": {ids.Uint64, "x.parquet",
			parquetOf(t, []unsignedRow{{1<<64 - 1}, {7}}), []string{"18446744073709551615", "7"}},
		"uint64 in Parquet, signed": {ids.Uint64, "x.parquet",
			parquetOf(t, []signedRow{{1<<63 - 1}, {7}}), []string{"9223372036854775807", "7"}},
		"uint64 in Parquet, strings": {ids.Uint64, "x.parquet", parquetOf(t, []stringRow{{"7"}}), []string{"7"}},
		"text in text": {ids.Text, "x.txt",
			"a b\n A\r\nA\n007\n7\n", []string{"a b", " A", "A", "007", "7"}},
		"text in CSV":              {ids.Text, "x.csv", "user_id,n\n\"a \"\"b\"\", c\",1\nd,2\n", []string{`a "b", c`, "d"}},
		"text in TSV with escapes": {ids.Text, "x.tsv", "user_id\tn\na\\\\b\t1\nd\t2\n", []string{`a\b`, "d"}},
		"text in NDJSON":           {ids.Text, "x.ndjson", `{"user_id":"\u00e9\"x"}` + "\n", []string{`é"x`}},
		"text in Parquet": {ids.Text, "x.parquet",
			parquetOf(t, []stringRow{{"a"}, {"é"}}), []string{"a", "é"}},
		"a text that looks like null": {ids.Text, "x.csv", "user_id\nnull\n", []string{"null"}},
	}
	type shown struct {
		kind   ids.Kind
		format Format
	}
	covered := map[shown]bool{}
	for _, c := range cases {
		r, known := readerOf(file{name: c.name}, nil)
		require.True(t, known)
		covered[shown{c.kind, r.format}] = true
	}
	for _, e := range exports() {
		r, _ := readerOf(file{name: e.name}, nil)
		for _, kind := range []ids.Kind{ids.Uint64, ids.UUID, ids.Text} {
			if !covered[shown{kind, r.format}] {
				_, err := runOne(t, kind, e.name, string(e.content))
				require.ErrorContains(t, err,
					"holds only dense ids", "no case has ids of the kind %s in %s", kind, r.format)
			}
		}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := runOne(t, c.kind, c.name, c.content)
			require.NoError(t, err)
			want := segmentstest.Images(t, result.Candidate.Scheme, c.want...)
			slices.Sort(want)
			var got []uint64
			for _, image := range result.Candidate.Dictionary.All() {
				got = append(got, image)
			}
			require.Equal(t, want, got)
			require.EqualValues(t, len(want), result.Candidate.Bitmaps[0].Cardinality())
		})
	}
}

func TestBadRowsOfIDsAreNamed(t *testing.T) {
	t.Parallel()
	const good = "018f3c4e-7a1b-7c3d-9e5f-0123456789ab"
	raw := raw16(t, good)
	for name, c := range map[string]struct {
		kind    ids.Kind
		name    string
		content string
		row     int64
		want    string
	}{
		"uuid in text":      {ids.UUID, "x.txt", good + "\n\n018f\n" + good + "\n", 2, "no user id"},
		"uuid cut":          {ids.UUID, "x.txt", good + "\n018f\n", 2, "is not a UUID"},
		"uuid in CSV":       {ids.UUID, "x.csv", "user_id,n\n" + good + ",1\n,2\n", 3, "no user id"},
		"number as a uuid":  {ids.UUID, "x.ndjson", `{"user_id":"` + good + `"}` + "\n" + `{"user_id":7}` + "\n", 2, "must be a JSON string"},
		"uint64 with zeros": {ids.Uint64, "x.txt", "7\n007\n", 2, "007"},
		"uint64 too large":  {ids.Uint64, "x.txt", "7\n18446744073709551616\n", 2, "18446744073709551615"},
		"uint64, a float":   {ids.Uint64, "x.ndjson", `{"user_id":7}` + "\n" + `{"user_id":7.5}` + "\n", 2, ""},
		"uint64, negative":  {ids.Uint64, "x.parquet", parquetOf(t, []signedRow{{7}, {-1}}), 2, "is not a user id"},
		"text, control":     {ids.Text, "x.csv", "user_id,n\na,1\n\"a\tb\",2\n", 3, ""},
		"text, a number":    {ids.Text, "x.ndjson", `{"user_id":"7"}` + "\n" + `{"user_id":7}` + "\n", 2, "must be a JSON string"},
		"text, half a pair": {ids.Text, "x.ndjson", `{"user_id":"7"}` + "\n" + `{"user_id":"\ud800"}` + "\n", 2, ""},
		"text, an escape":   {ids.Text, "x.tsv", "user_id\tn\na\t1\na\\nb\t2\n", 3, "escaped character"},
		"null in Parquet":   {ids.UUID, "x.parquet", parquetOf(t, []optionalRow{{ptr(good)}, {nil}}), 2, "no user id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := runOne(t, c.kind, c.name, c.content)
			var bad *BadRowsError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, c.row, bad.Samples[0].Row)
			require.Contains(t, bad.Samples[0].Reason, c.want)
			require.NotNil(t, result)
		})
	}
	for name, c := range map[string]struct {
		kind    ids.Kind
		name    string
		content string
		want    string
	}{
		"integers as uuid": {ids.UUID, "x.parquet",
			parquetOf(t, []signedRow{{7}}), "ids of the kind uuid must be strings, or UUIDs of 16 bytes"},
		"integers as text": {ids.Text, "x.parquet",
			parquetOf(t, []signedRow{{7}}), "ids of the kind text must be strings"},
		"uuid bytes as int": {ids.Uint64, "x.parquet",
			parquetOf(t, []uuidRow{{raw}}), "ids of the kind uint64 must be 32-bit or 64-bit"},
		"a bitmap": {ids.UUID, "x.roaring",
			string(bitmap.Of(1).Bytes()),
			"a bitmap holds only dense ids (32-bit integers), but the location has ids of the kind uuid"},
		"names before texts":   {ids.Text, "x.csv", "name,email\nAlice,a@x.com\n", unknownColumn},
		"texts before names":   {ids.Text, "x.csv", "email,name\na@x.com,Alice\n", unknownColumn},
		"one column of texts":  {ids.Text, "x.csv", "email\na@x.com\n", unknownColumn},
		"texts in TSV":         {ids.Text, "x.tsv", "a@x.com\tAlice\n", unknownColumn},
		"texts of other names": {ids.Text, "x.csv", "order_id,email\n7,a@x.com\n", "other id columns exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runOne(t, c.kind, c.name, c.content)
			var input *InputError
			require.ErrorAs(t, err, &input)
			require.ErrorContains(t, err, c.want)
		})
	}
}

const unknownColumn = "the column with the user ids is unknown"

// TestColumnsOfTexts reads a file in which any column could hold ids.
func TestColumnsOfTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		change  func(*Input)
		want    int64
	}{
		"by name":       {"name,email\nAlice,a@x.com\n", func(in *Input) { in.IDColumn = "email" }, 1},
		"by number":     {"Alice,a@x.com\nBob,b@x.com\n", func(in *Input) { in.IDColumn = "2" }, 2},
		"with a header": {"email\na@x.com\n", func(in *Input) { in.Header = format.HeaderYes }, 1},
		"without one":   {"b@x.com\na@x.com\n", func(in *Input) { in.Header = format.HeaderNo }, 2},
		"a usual name":  {"name,customer_id\nAlice,a@x.com\n", func(*Input) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := runOne(t, ids.Text, "x.csv", c.content, c.change)
			require.NoError(t, err)
			require.Equal(t, c.want, result.Files[0].Rows)
		})
	}
}

func raw16(t *testing.T, id string) [16]byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
	require.NoError(t, err)
	return [16]byte(raw)
}

func ptr(s string) *string { return &s }

// TestAmongMillionsOfImages sorts and merges lists that are long enough for all parts of the images' space.
func TestAmongMillionsOfImages(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	var m images
	want := map[uint64]bool{}
	var lists [][]uint64
	for _, n := range []int{0, 1, 300_000, 150_000, 70_000} {
		l := m.newList()
		var list []uint64
		for range n {
			image := random.Uint64() >> 3 << 40 // repeats
			list, want[image] = append(list, image), true
		}
		s := &imageSink{to: &imageLists{of: &m}, list: l}
		for part := range slices.Chunk(list, 7777) {
			s.add(&format.Block{Images: part})
		}
		s.flush()
		l.sort()
		lists = append(lists, list)
	}
	sorted := m.lists
	d, _, err := m.number(ids.UUID)
	require.NoError(t, err)
	require.EqualValues(t, len(want), d.Len())
	for _, image := range d.All() {
		require.True(t, want[image])
	}
	for i, l := range sorted {
		var numbers []uint32
		for _, image := range lists[i] {
			n, ok := d.Number(image)
			require.True(t, ok)
			numbers = append(numbers, n)
		}
		require.Equal(t, bitmap.Of(numbers...).Bytes(), l.numbered(d).Bytes())
	}
}
