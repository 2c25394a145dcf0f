package format

import (
	"testing"
)

func BenchmarkParseDelimited(b *testing.B) {
	csv := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: -1, columns: 2}
	table := &layout{dialect: dialect{delimiter: ',', quote: '"'}, id: 0, segment: 1, columns: 2}
	tsv := &layout{dialect: dialect{delimiter: '\t', escape: '\\'}, id: 0, segment: 1, columns: 2}
	wide := &layout{dialect: tsv.dialect, id: 0, segment: 1, columns: 3}
	for _, c := range []struct {
		name, row string
		table     bool
		parse     func(into *Block, text []byte, line int64)
	}{
		{"text", "%d\n", false, parseText},
		{"csv", "%d,active\n", false, csv.parse},
		{"csv table", "%d,active\n", true, table.parse},
		{"csv table, quoted", "\"%d\",\"active\"\n", true, table.parse},
		{"tsv table", "%d\tactive\n", true, tsv.parse},
		{"tsv table, escapes", "%d\tactive\t\\N\n", true, wide.parse},
	} {
		b.Run(c.name, func(b *testing.B) { benchmark(b, c.row, c.table, c.parse) })
	}
}
