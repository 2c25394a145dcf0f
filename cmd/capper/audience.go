package main

import (
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/segments/ingest"
)

// audience is the users a command is about.
type audience struct {
	File   string `arg:"" name:"audience" help:"Users: text or CSV of ids, or .roaring; plain, gzip or zstd; - for standard input."`
	Format string `default:"" enum:",text,csv,tsv,ndjson,parquet,roaring" help:"Format of the audience; by name and content if not given."`
	Column string `placeholder:"NAME|N" help:"Column of the ids, by name or number from 1."`
}

// read is the audience, each user once.
func (a *audience) read(on *console) (*roaring.Bitmap, error) {
	reader := ingest.NewReader(ingest.Config{Stdin: on.stdin})
	set, err := reader.ReadIDs(on.ctx, []ingest.Input{{Path: a.File, Format: ingest.Format(a.Format), IDColumn: a.Column}})
	if err == nil {
		err = reader.Check()
	}
	var bad *ingest.BadRowsError
	switch {
	case errors.As(err, &bad):
		return nil, badInput{fmt.Errorf("audience %s: %w", a.File, err)}
	case err != nil:
		return nil, badInput{named("read audience", err)}
	case set.Empty():
		return nil, badInput{fmt.Errorf("audience %s: holds no user", a.File)}
	}
	return set.Bitmap().Roaring(), nil
}
