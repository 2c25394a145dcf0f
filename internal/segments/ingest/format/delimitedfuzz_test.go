package format

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzText(f *testing.F) {
	f.Add("1\n2\r\n\n4294967296\n-1\n 7 \nabc")
	f.Add("00000000000000000001\n4294967295")
	f.Fuzz(func(t *testing.T, content string) {
		got := parse(content, (&delimited{text: true}).Syntax())
		var want []uint32
		bad := int64(0)
		content = strings.TrimRight(content, "\r\n")
		for _, line := range strings.Split(content, "\n") {
			if content == "" {
				break
			}
			if id, ok := PlainID(line); ok {
				want = append(want, id)
			} else {
				bad++
			}
		}
		require.Equal(t, want, append([]uint32(nil), got.IDs...))
		require.Equal(t, bad, got.BadLines)
	})
}

// FuzzCSV checks that every file that encoding/csv accepts gives the same ids and the same number of
// bad rows.
func FuzzCSV(f *testing.F) {
	f.Add("1,a\n2,b\nx,c\n")
	f.Add("\"1\",\"a\"\"b\"\n2,\"c\nd,\"\n\"x\",e")
	f.Add("1,\"\"\n,\n\"\",2")
	f.Add("1,\"a\nb\"\n,\"\n\"")
	f.Add("1,\"a\n2,b\"\n3,\"a\n4,b\n5,c\n6,d\"")
	f.Fuzz(func(t *testing.T, content string) {
		content = strings.TrimRight(content, "\r\n")
		if strings.Contains(content, "\r") || strings.Contains("\n"+content, "\n\n") {
			return // encoding/csv rewrites these
		}
		reference := csv.NewReader(strings.NewReader(content))
		reference.FieldsPerRecord = 2
		read, err := reference.ReadAll()
		if err != nil {
			return
		}
		l := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: -1, columns: 2}
		got := parse(content, (&delimited{layout: l}).Syntax())
		var want []uint32
		bad := int64(0)
		for _, row := range read {
			if len(likeRows.FindAllString(row[0]+","+row[1], -1)) > maxLikeRows {
				return // many lines in quotes that read as rows: refused here, fine there
			}
			if id, ok := PlainID(row[0]); ok {
				want = append(want, id)
			} else {
				bad += 1 + int64(strings.Count(row[0]+row[1], "\n"))
			}
		}
		require.Equal(t, want, append([]uint32(nil), got.IDs...))
		require.Equal(t, bad, got.BadLines)
	})
}

var likeRows = regexp.MustCompile(`\n[" \t]*[0-9]+[" \t]*,`)

// FuzzTSV compares the parser with a second implementation of escapes, which replaces escaped
// characters before it splits the text.
func FuzzTSV(f *testing.F) {
	f.Add("1\ta\n2\t\\N\nx\tc\n")
	f.Add("1\t\"a\\\n5\tb\n\\N\t\\\\\n3\t\\\t\n")
	f.Add("\\\n\\\n1\t\\")
	f.Fuzz(func(t *testing.T, content string) {
		content = strings.TrimRight(content, "\r\n")
		if content == "" || strings.ContainsAny(content, "\r\x01\x02") {
			return
		}
		l := &layout{dialect: dialect{delimiter: '\t', escape: '\\'}, id: 0, segment: -1, columns: 2}
		got := parse(content, (&delimited{layout: l}).Syntax())
		hidden := strings.ReplaceAll(strings.ReplaceAll(content, `\\`, "\x01"), "\\\n", "\x02")
		hidden = regexp.MustCompile(`\\[^\n]`).ReplaceAllString(hidden, "\x01")
		var want []uint32
		bad := 0
		for _, row := range strings.Split(hidden, "\n") {
			fields := strings.Split(row, "\t")
			if id, ok := PlainID(fields[0]); ok && len(fields) == 2 {
				want = append(want, id)
			} else {
				bad += 1 + strings.Count(row, "\x02")
			}
		}
		require.Equal(t, want, append([]uint32(nil), got.IDs...))
		require.EqualValues(t, bad, got.BadLines)
	})
}
