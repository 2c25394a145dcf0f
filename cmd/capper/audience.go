package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/console"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/delimited"
)

// audience is the users a command is about.
type audience struct {
	File   string `arg:"" name:"audience" help:"Users: a file of ids as text, CSV, TSV, NDJSON, Parquet or .roaring; plain, gzip or zstd; - for standard input."`
	Format string `default:"" enum:",text,csv,tsv,ndjson,parquet,roaring" placeholder:"FORMAT" help:"Format of the audience: text, csv, tsv, ndjson, parquet, roaring. By name and content if not given."`
	Column string `placeholder:"NAME|N" help:"Column of the ids, by name or number from 1."`

	Quote  delimited.Mark `placeholder:"C" help:"Quote of a CSV or TSV: one byte, or none. If not given: a double quote in CSV, none in TSV."`
	Escape delimited.Mark `placeholder:"C" help:"Escape of a CSV or TSV: one byte, or none. If not given: none in CSV, a backslash in TSV."`

	FinalNewline ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text must end in a line break (required, optional). If not given: above 16 KiB, because a text that was cut off shows in nothing else."`
}

// read is the audience, each user once.
func (a *audience) read(ctx context.Context, on *console.Streams) (*roaring.Bitmap, error) {
	reader := ingest.NewReader(ingest.Config{Stdin: on.In})
	set, err := reader.ReadIDs(ctx, []ingest.Input{{
		Path: a.File, Format: ingest.Format(a.Format), IDColumn: a.Column,
		Quote: a.Quote, Escape: a.Escape, FinalNewline: a.FinalNewline,
	}})
	if err == nil {
		err = reader.Check()
	}
	for _, f := range reader.Reports() {
		if f.Multiline != nil { // mostly addresses, but a quote that is missing looks like this too
			on.Say("rows over several lines in %s: %s", f.File, f.Multiline)
		}
	}
	switch {
	case err != nil:
		return nil, a.fault(err)
	case set.Empty():
		return nil, console.WithStatus(console.BadInput, fmt.Errorf("audience %s: holds no user", a.File))
	}
	return set.Bitmap().Roaring(), nil
}

// fault tells what is wrong with the audience from what is wrong on the way to it.
func (a *audience) fault(err error) error {
	var rows *ingest.BadRowsError
	var input *ingest.InputError
	switch {
	case errors.Is(err, ingest.ErrNoFinalNewline):
		return console.Hinted(console.WithStatus(console.BadInput, fmt.Errorf("read audience: %w", err)), "if the file is whole: end its last line, or say --final-newline optional")
	case errors.As(err, &rows):
		return console.WithStatus(console.BadInput, fmt.Errorf("audience %s: %w", a.File, err))
	case errors.As(err, &input):
		return console.WithStatus(console.BadInput, fmt.Errorf("read audience: %w", err))
	}
	return fmt.Errorf("read audience: %w", err)
}
