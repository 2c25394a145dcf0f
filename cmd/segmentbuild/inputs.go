package main

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/format"
	"capper/internal/terminal"
)

// inputFlags contains the command-line flags for reading input files.
type inputFlags struct {
	Format        ingest.Format       `enum:",${formats}" default:"" placeholder:"FORMAT" help:"Format of the input files: ${formats}. Default: the command detects the format from each file's name and content. The command always detects compression with gzip or zstd."`
	IDColumn      string              `name:"id-column" aliases:"column" placeholder:"NAME|N" help:"Name or number (from 1) of the column with the user ids. Default: the column 'user_id'. If this column is missing, the default is the column with another common name, such as customer_id. If no column name looks like an id, the default is the first column."`
	SegmentColumn string              `name:"segment-column" placeholder:"NAME|N" help:"Name or number (from 1) of the column with the segment names in a table. Default: the column 'segment', or the second column if no column has this name."`
	Delimiter     ingest.Delimiter    `placeholder:"C" help:"Character between columns: one byte. Default: a comma in CSV, a tab in TSV."`
	Header        format.Header       `enum:",yes,no" default:"" placeholder:"yes|no" help:"Whether the first row of CSV, TSV and text files is a header: yes or no. Default: yes if another flag names a column, or if the row contains a common column name, such as user_id, and no number."`
	Quote         format.Mark         `placeholder:"C" help:"Character that encloses fields in CSV and TSV files: one byte, or none. Default: a double quote in CSV, none in TSV."`
	Escape        format.Mark         `placeholder:"C" help:"Character that escapes delimiters, quotes and line breaks in CSV and TSV files: one byte, or none. Default: none in CSV, a backslash in TSV."`
	FinalNewline  ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text file must end with a line break: required or optional. A missing line break is a sign of a truncated file. Default: required for files above 16 KiB, optional for smaller files."`

	MaxBadRows ingest.Tolerance `name:"max-bad-rows" placeholder:"N|N%" help:"Maximum number of invalid rows that the command skips: N rows in all files together, or N% of the rows of each file. A file without a valid row is always an error."`
	BadRowsTo  string           `name:"bad-rows-to" placeholder:"FILE" help:"Output file for all invalid rows, each as a JSON object with file, row, lines, value and reason."`
}

// The method "input" returns the settings for all input files from the flags.
func (f *inputFlags) input() ingest.Input {
	return ingest.Input{Format: f.Format, Header: f.Header, IDColumn: f.IDColumn, SegmentColumn: f.SegmentColumn,
		Delimiter: f.Delimiter, Quote: f.Quote, Escape: f.Escape, FinalNewline: f.FinalNewline}
}

// The method "read" reads the input files and builds the segments and sets. The method "read" writes all bad rows to
// the file of the flag --bad-rows-to, including rows that --max-bad-rows permits.
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
