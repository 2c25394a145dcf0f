package ingest

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/ingest/format"
)

// TestFileThatChangesWhileItIsReadIsNoFile checks that a file whose length changes during reading is
// rejected.
func TestFileThatChangesWhileItIsReadIsNoFile(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("1234567\n"), 3<<17) // more than a block
	parquet := exports()[5].content
	for name, content := range map[string][]byte{"a.txt": text, "a.txt.gz": fastGzip(bytes.Join([][]byte{text, parquet},
		nil)), "a.parquet": parquet} {
		for _, by := range []int64{-8, 8} {
			path := write(t, name, content)
			changed := false
			_, err := NewReader(Config{Progress: func(read, total int64) {
				if !changed {
					changed = true
					require.NoError(t, os.Truncate(path, int64(len(content))+by))
				}
			}}).ReadIDs(t.Context(), []Input{{Path: path}})
			require.Error(t, err, "%s by %d", name, by)
		}
	}
}

// TestLastObjectHasToEnd checks that the closing brace decides whether the last object of a long
// NDJSON file is complete.
func TestLastObjectHasToEnd(t *testing.T) {
	t.Parallel()
	const last = `{"user_id": 7, "of": {"x": [1, "}"]}}`
	row := `{"user_id": 1234567, "note": "` + strings.Repeat("x", 200) + "\"}\n"
	long := strings.Repeat(row, format.HeadBytes/len(row)+1000)
	for cut := range len(last) + 1 {
		for name, pack := range map[string]func([]byte) []byte{"a.ndjson": bytes.Clone, "a.ndjson.gz": fastGzip} {
			if name == "a.ndjson.gz" && cut%6 > 0 {
				continue // a few do: what is unpacked is read like the other
			}
			_, err := read(t, Input{Path: write(t, name, pack([]byte(long+last[:cut])))})
			whole := cut == 0 || cut == len(last)
			require.Equal(t, !whole, errors.Is(err, ErrNoFinalNewline), "%s: %s: %v", name, last[:cut], err)
		}
	}
	for end, refused := range map[string]bool{" \r": false, "}": true, "7": true, "\n7": true, "\n[]": true,
		"\nnull": true} {
		_, err := read(t, Input{Path: write(t, "a.ndjson", []byte(long+last+end))})
		require.Equal(t, refused, errors.Is(err, ErrNoFinalNewline), "%q: %v", end, err)
	}
	ids, err := read(t, Input{Path: write(t, "a.ndjson", []byte(long+last))})
	require.NoError(t, err)
	require.Equal(t, []uint32{7, 1234567}, ids)
	_, err = read(t, Input{Path: write(t, "a.ndjson", []byte(long+last)), FinalNewline: newlineRequired})
	require.ErrorIs(t, err, ErrNoFinalNewline)
}

func TestLastLineHasToEnd(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("1234567\n"), 1<<11)
	for _, c := range []struct {
		content []byte
		rule    FinalNewline
		refused bool
	}{
		{[]byte("1\n2"), newlineAuto, false},
		{[]byte("1\n2"), newlineRequired, true},
		{[]byte("1\n2\n"), newlineRequired, false},
		{nil, newlineRequired, false},
		{long, newlineAuto, false},
		{append(bytes.Clone(long), '1'), newlineAuto, true},
		{append(bytes.Clone(long), '1', '\r'), newlineAuto, true},
		{append(bytes.Clone(long), '1'), newlineOptional, false},
		{append(bytes.Clone(long), "1\n\n\r\n"...), newlineAuto, false},
	} {
		for _, name := range []string{"a.txt", "a.csv", "a.tsv", "a.txt.gz"} {
			content := c.content
			if name == "a.txt.gz" {
				content = fastGzip(content)
			}
			_, err := read(t, Input{Path: write(t, name, content), FinalNewline: c.rule})
			require.Equal(t, c.refused, errors.Is(err, ErrNoFinalNewline), "%s of %d bytes, %q: %v", name,
				len(c.content), c.rule, err)
		}
	}
	_, err := read(t, Input{Path: write(t, "a.txt", append(bytes.Clone(long), "98"...))})
	require.ErrorContains(t, err, `a.txt: line 2049: "98": the last line does not end`)
}

// TestNameOfACompressionIsNotEnough checks that a file with a compression's extension but other
// content, or none, is rejected.
func TestNameOfACompressionIsNotEnough(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.txt.gz", "a.csv.gzip", "a.tsv.ZST", "a.ndjson.zstd"} {
		for _, content := range []string{"", "\x1f", "1\n"} {
			_, err := read(t, Input{Path: write(t, name, []byte(content))})
			require.ErrorContains(t, err, "the file name says ", name)
		}
	}
	skippable := append([]byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'a', 'b', 'c', 'd'}, fastZstd([]byte("1\n2\n"))...)
	for _, name := range []string{"a.txt.zst", "a"} {
		got, err := read(t, Input{Path: write(t, name, skippable)})
		require.NoError(t, err)
		require.Equal(t, []uint32{1, 2}, got)
	}
}
