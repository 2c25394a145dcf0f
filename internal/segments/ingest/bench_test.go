package ingest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// noSink takes rows and drops them.
type noSink struct{}

func (noSink) code([]byte) (uint8, error) { return 1, nil }
func (noSink) add([]uint32, []uint8)      {}
func (noSink) flush()                     {}

// BenchmarkParse is the parsing alone, on one core, of one block of random ids.
func BenchmarkParse(b *testing.B) {
	fields := &objectFields{id: "user_id", segment: "segment"}
	csv := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: -1, columns: 2}
	table := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: 1, columns: 2}
	tsv := &layout{dialect: dialect{delimiter: '\t', escape: '\\'}, id: 0, segment: 1, columns: 2}
	wide := &layout{dialect: tsv.dialect, id: 0, segment: 1, columns: 3}
	for _, c := range []struct {
		name, row string
		parse     func(w *worker, block []byte, line int64)
	}{
		{"text", "%d\n", parseText},
		{"csv", "%d,active\n", csv.parse},
		{"csv table", "%d,active\n", table.parse},
		{"csv table, quoted", "\"%d\",\"active\"\n", table.parse},
		{"tsv table", "%d\tactive\n", tsv.parse},
		{"tsv table, escapes", "%d\tactive\t\\N\n", wide.parse},
		{"ndjson table", "{\"user_id\": %d, \"segment\": \"active\"}\n", fields.parse},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			var block bytes.Buffer
			rows := 0
			for ; block.Len() < blockBytes-100; rows++ {
				fmt.Fprintf(&block, c.row, r.Uint32N(270_000_000))
			}
			w := &worker{sink: noSink{}}
			b.SetBytes(int64(block.Len()))
			b.ReportAllocs()
			for b.Loop() {
				w.begin()
				c.parse(w, block.Bytes(), 1)
			}
			if len(w.ids) != rows {
				b.Fatalf("%d rows, want %d", len(w.ids), rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
		})
	}
}
