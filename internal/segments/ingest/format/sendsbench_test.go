package format_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
)

// BenchmarkReadSends measures the reading of files of sends in each format.
func BenchmarkReadSends(b *testing.B) {
	type row struct {
		User      uint32    `parquet:"user_id"`
		At        time.Time `parquet:"at,timestamp(millisecond)"`
		Channel   string    `parquet:"channel,dict"`
		MessageID string    `parquet:"message_id"`
	}
	const count = 20_000
	random := rand.New(rand.NewPCG(1, 1))
	var rows []row
	for i := range count {
		at := noon.Add(-time.Duration(random.IntN(1e6)) * time.Second)
		rows = append(rows, row{random.Uint32N(270_000_000), at, "push", fmt.Sprint("campaign-", i%1000)})
	}
	var table bytes.Buffer
	require.NoError(b, parquet.Write(&table, rows))
	text := func(header, layout string) []byte {
		out := bytes.NewBufferString(header)
		for _, r := range rows {
			fmt.Fprintf(out, layout, r.User, r.At.Format(time.RFC3339), r.Channel, r.MessageID)
		}
		return out.Bytes()
	}
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"plain.csv", text("user_id,at,channel,message_id\n", "%d,%s,%s,%s\n")},
		{"quoted.csv", text("user_id,at,channel,message_id\n", "\"%d\",\"%s\",\"%s\",\"%s\"\n")},
		{"plain.tsv", text("user_id\tat\tchannel\tmessage_id\n", "%d\t%s\t%s\t%s\n")},
		{"flat.ndjson", text("", `{"user_id":%d,"at":"%s","channel":"%s","message_id":"%s"}`+"\n")},
		{"nested.ndjson", text("", `{"user_id":%d,"at":"%s","channel":"%s","message_id":"%s","tags":[]}`+"\n")},
		{"x.parquet", table.Bytes()},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), c.name)
			require.NoError(b, os.WriteFile(path, c.data, 0o600))
			b.ReportAllocs()
			for b.Loop() {
				read := 0
				err := format.ReadSends(b.Context(), objects.LocalFiles{}, path, format.SendOptions{Now: noon}, nil,
					func(_ format.SendRow, bad *format.RowError) error {
						if bad == nil {
							read++
						}
						return nil
					})
				if err != nil || read != count {
					b.Fatalf("%d rows, want %d: %v", read, count, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/row")
		})
	}
}
