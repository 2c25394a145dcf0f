package ingest

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

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
	for at := 0; at < len(raw); at += 13 {
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
