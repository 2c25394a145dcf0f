package ingest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsed runs a parser over whole blocks, cut where readBlocks would cut them.
func parsed(content string, cut func([]byte) int, parse func(w *worker, block []byte, line int64)) *worker {
	w := &worker{sink: noSink{}, keep: maxSamples}
	w.begin()
	block := []byte(strings.TrimRight(content, "\r\n"))
	line := int64(1)
	if half := cut(block[:len(block)/2]); half > 0 {
		parse(w, block[:half], line)
		line += int64(bytes.Count(block[:half], []byte{'\n'}))
		block = block[half:]
	}
	parse(w, block, line)
	return w
}

// plainRule is the rule for ids, written another way.
func plainRule(field string) (uint32, bool) {
	field = strings.Trim(field, " \t\r")
	if strings.Trim(field, "0123456789") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(field, 10, 32)
	return uint32(v), err == nil
}

func FuzzText(f *testing.F) {
	f.Add("1\n2\r\n\n4294967296\n-1\n 7 \nabc")
	f.Add("00000000000000000001\n4294967295")
	f.Fuzz(func(t *testing.T, content string) {
		w := parsed(content, wholeLines, parseText)
		var want []uint32
		bad := int64(0)
		content = strings.TrimRight(content, "\r\n")
		for _, line := range strings.Split(content, "\n") {
			if content == "" {
				break
			}
			if id, ok := plainRule(line); ok {
				want = append(want, id)
			} else {
				bad++
			}
		}
		require.Equal(t, want, append([]uint32(nil), w.ids...))
		require.Equal(t, bad, w.count)
	})
}

// FuzzCSV: whatever encoding/csv reads without complaint gives the same ids and
// the same number of bad rows.
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
		records, err := reference.ReadAll()
		if err != nil {
			return
		}
		s := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: -1, columns: 2}
		w := parsed(content, s.wholeRecords, s.parse)
		var want []uint32
		bad := int64(0)
		for _, record := range records {
			if len(likeRows.FindAllString(record[0]+","+record[1], -1)) > maxLikeRows {
				return // many lines in quotes that read as rows: refused here, fine there
			}
			if id, ok := plainRule(record[0]); ok {
				want = append(want, id)
			} else {
				bad += 1 + int64(strings.Count(record[0]+record[1], "\n"))
			}
		}
		require.Equal(t, want, append([]uint32(nil), w.ids...))
		require.Equal(t, bad, w.count)
	})
}

var likeRows = regexp.MustCompile(`\n[" \t]*[0-9]+[" \t]*,`)

// FuzzTSV: the rule for escapes, written another way: they are put out of sight
// before anything is split.
func FuzzTSV(f *testing.F) {
	f.Add("1\ta\n2\t\\N\nx\tc\n")
	f.Add("1\t\"a\\\n5\tb\n\\N\t\\\\\n3\t\\\t\n")
	f.Add("\\\n\\\n1\t\\")
	f.Fuzz(func(t *testing.T, content string) {
		content = strings.TrimRight(content, "\r\n")
		if content == "" || strings.ContainsAny(content, "\r\x01\x02") {
			return
		}
		s := &layout{dialect: dialect{delimiter: '\t', escape: '\\'}, id: 0, segment: -1, columns: 2}
		w := parsed(content, s.wholeRecords, s.parse)
		hidden := strings.ReplaceAll(strings.ReplaceAll(content, `\\`, "\x01"), "\\\n", "\x02")
		hidden = regexp.MustCompile(`\\[^\n]`).ReplaceAllString(hidden, "\x01")
		var want []uint32
		bad := 0
		for _, record := range strings.Split(hidden, "\n") {
			fields := strings.Split(record, "\t")
			if id, ok := plainRule(fields[0]); ok && len(fields) == 2 {
				want = append(want, id)
			} else {
				bad += 1 + strings.Count(record, "\x02")
			}
		}
		require.Equal(t, want, append([]uint32(nil), w.ids...))
		require.EqualValues(t, bad, w.count)
	})
}

// FuzzNDJSON: an object's id is what encoding/json finds under exactly that name.
func FuzzNDJSON(f *testing.F) {
	f.Add(`{"user_id": 1, "x": [{"user_id": 2}, "}"], "y": "\"user_id\": 3"}`)
	f.Add(`{"x":null,"\u0075ser_id":"12"}`)
	f.Add(`{"user_id":1e3}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, row string) {
		if strings.ContainsAny(row, "\n") {
			return
		}
		w := parsed(row, wholeLines, (&objectFields{id: "user_id"}).parse)
		if strings.TrimRight(row, "\r") == "" {
			return
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(row), &object) != nil || object == nil {
			require.Empty(t, w.ids)
			require.EqualValues(t, 1, w.count)
			return
		}
		value := string(object["user_id"])
		if unquoted := strings.Trim(value, `"`); value != "" && value == `"`+unquoted+`"` {
			value = unquoted
		}
		id, ok := plainRule(value)
		if strings.ContainsAny(value, " \t\r") {
			return // spaces inside a JSON string: a matter of taste, not of JSON
		}
		if len(w.ids) == 1 {
			require.True(t, ok, "value %q", value)
			require.Equal(t, id, w.ids[0])
			return
		}
		require.EqualValues(t, 1, w.count)
		require.True(t, !ok || strings.Count(row, "user_id")+strings.Count(row, `\`) > 1, "%q was refused", row)
	})
}

func TestDamagedParquetIsAnErrorNotACrash(t *testing.T) {
	t.Parallel()
	type row struct {
		UserID  *int64 `parquet:"user_id,optional,dict"`
		Segment string `parquet:"segment,dict"`
	}
	var rows []row
	for i := range int64(300) {
		rows = append(rows, row{&i, fmt.Sprint("s", i%3)})
	}
	raw, err := os.ReadFile(parquetFile(t, rows))
	require.NoError(t, err)
	path := write(t, "damaged.parquet", raw)
	for at := 0; at < len(raw); at += 7 {
		for _, damage := range [][]byte{raw[:at], append(append(bytes.Clone(raw[:at]), raw[at]^0x55), raw[at+1:]...)} {
			require.NoError(t, os.WriteFile(path, damage, 0o644))
			r := NewReader(Config{Workers: 1, MaxBadRows: Tolerance{Rows: 1 << 30}})
			_, err := r.ReadTable(t.Context(), []Input{{Path: path}}, nil)
			if len(damage) < len(raw) {
				require.Error(t, err, "cut off after %d bytes", at)
			}
		}
	}
}
