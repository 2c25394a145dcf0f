package format

import (
	"testing"
)

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, row string }{
		{"flat", "{\"user_id\": %d, \"segment\": \"active\"}\n"},
		{"nested", "{\"user_id\": %d, \"segment\": \"active\", \"tags\": []}\n"},
	} {
		b.Run(c.name, func(b *testing.B) { benchmark(b, c.row, true, NDJSON("user_id", "segment", nil).Parse) })
	}
}
