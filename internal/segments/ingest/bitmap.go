package ingest

import (
	"fmt"
	"io"

	"capper/internal/bitmap"
)

// maxRoaringBytes is above the largest bitmap of 32-bit ids; ReadBitmap has the exact bound.
const maxRoaringBytes = 1 << 30

// readRoaring adds a serialized bitmap in the portable 32-bit format.
func (j *job) readRoaring(src *source) error {
	if j.table {
		return fmt.Errorf("a bitmap cannot be a table of ids and segments")
	}
	raw, err := io.ReadAll(io.LimitReader(src, maxRoaringBytes))
	if err != nil {
		return err
	}
	b, err := bitmap.Read(raw)
	if err != nil {
		return fmt.Errorf("read the bitmap: %w", err)
	}
	j.pool.to.(*oneSet).set.AddBitmap(b)
	j.rows.Add(int64(b.Cardinality()))
	return nil
}
