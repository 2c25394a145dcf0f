package main

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/format"
	"capper/internal/terminal"
)

// inputFlags holds the flags that say how to read input files.
type inputFlags struct {
	Format        ingest.Format       `enum:",${formats}" default:"" placeholder:"FORMAT" help:"Format of the input files: ${formats}. Default: detected from file name and content; gzip and zstd are always detected."`
	IDColumn      string              `name:"id-column" placeholder:"NAME|N" help:"Column that holds the user id, by name or by number starting at 1."`
	SegmentColumn string              `name:"segment-column" placeholder:"NAME|N" help:"Column of a table that holds the segment name, by name or by number starting at 1."`
	Delimiter     string              `placeholder:"C" help:"Delimiter between columns: one byte."`
	Header        format.Header       `enum:",yes,no" default:"" placeholder:"yes|no" help:"Whether the first row of CSV, TSV and text files is a header (yes, no). Default: yes if a column is selected by name, or if the row holds no number but a name such as user_id."`
	Quote         format.Mark         `placeholder:"C" help:"Quote character around fields of CSV and TSV files: one byte, or none. Default: a double quote in CSV, none in TSV."`
	Escape        format.Mark         `placeholder:"C" help:"Escape character before delimiters, quotes and line breaks in CSV and TSV files: one byte, or none. Default: none in CSV, a backslash in TSV."`
	FinalNewline  ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text file must end in a line break (required, optional). Default: required for files above 16 KiB, where a missing line break is the only sign of a truncated file."`

	MaxBadRows ingest.Tolerance `name:"max-bad-rows" placeholder:"N|N%" help:"Maximum number of bad rows in all files together (N), or in each file as a share of its rows (N%); they are skipped and counted. A file without a valid row is always an error."`
	BadRowsTo  string           `name:"bad-rows-to" placeholder:"FILE" help:"File that receives every bad row, one JSON object per line with file, row, lines, value and reason."`
}

// input returns the settings that the flags give to every input.
func (f *inputFlags) input() (base ingest.Input, err error) {
	base = ingest.Input{Format: f.Format, Header: f.Header, IDColumn: f.IDColumn, SegmentColumn: f.SegmentColumn,
		Quote: f.Quote, Escape: f.Escape, FinalNewline: f.FinalNewline}
	if f.Delimiter != "" {
		if err := base.SetDelimiter(f.Delimiter); err != nil {
			return base, fmt.Errorf("--delimiter %w", err)
		}
	}
	return base, nil
}

// read reads the inputs, builds the segments and sets, and lists the bad rows, including tolerated ones.
func (f *inputFlags) read(ctx context.Context, plan *ingest.Plan, cfg ingest.Config,
	show *terminal.Progress) (*ingest.Result, error) {
	closeList := func() error { return nil }
	if f.BadRowsTo != "" {
		list, err := newBadRowList(f.BadRowsTo)
		if err != nil {
			return nil, terminal.Misuse(fmt.Errorf("--bad-rows-to: %w", err))
		}
		cfg.BadRows, closeList = list.add, list.close
	}
	result, err := ingest.Run(ctx, plan, cfg, func(step string) { show.Step(step, 0) })
	if closeErr := closeList(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	return result, err
}
