package ingest

import (
	"context"
	"errors"
)

func (j *job) readParquet(ctx context.Context, src *source) error {
	return errors.Join(ctx.Err(), errors.New("parquet"))
}
