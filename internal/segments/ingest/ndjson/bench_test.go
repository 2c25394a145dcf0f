package ndjson

import (
	"testing"

	"capper/internal/segments/ingest/rowstest"
)

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, row string }{
		{"flat", "{\"user_id\": %d, \"segment\": \"active\"}\n"},
		{"nested", "{\"user_id\": %d, \"segment\": \"active\", \"tags\": []}\n"},
	} {
		b.Run(c.name, func(b *testing.B) { rowstest.Benchmark(b, c.row, true, Syntax("user_id", "segment").Parse) })
	}
}
