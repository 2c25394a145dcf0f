package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/format"
	"capper/internal/terminal"
)

// The type audience holds the command-line arguments that select users: a file of user ids, or an audience expression
// that the service evaluates.
type audience struct {
	File       string `arg:"" optional:"" name:"audience" help:"File of user ids: ${format_titles}, plain or compressed with gzip or zstd; - is standard input. Give either this file or --audience."`
	Expression string `name:"audience" placeholder:"EXPR" help:"Expression that selects users by segment and set (groups of users). For example, 'active - vip' selects the users in 'active' who are not in 'vip'. Operators: & (and), | (or), - (but not) and parentheses. Write a space before the operator -."`
	cli.Narrowed
	idFile
}

// The method "check" returns an error unless the command-line arguments name exactly one audience: a file or an
// expression.
func (a *audience) check() error {
	switch {
	case a.File == "" && a.Expression == "":
		return errors.New("audience is missing: name a file of user ids, or an expression with --audience")
	case a.File != "" && a.Expression != "":
		return errors.New("audience is given twice: name either a file of user ids or an expression with --audience")
	case a.Expression != "" && a.idFile != idFile{}:
		return errors.New(ofFile)
	case a.File != "" && a.Given():
		return errors.New(
			"--sample, --salt and --generation require --audience instead of a file of user ids")
	case a.Expression == "":
		return nil
	}
	_, err := a.Audience(a.Expression)
	return err
}

// The method "parts" divides the users of the audience expression into parts, one part for each API call. The API calls
// for all parts use the same generation (published version of the segments). The method "parts" stores the generation's
// name, so that a later run of the command can select the same users.
func (a *audience) parts(ctx context.Context, api *client.Client) (*client.Parts, error) {
	whole, err := a.Audience(a.Expression)
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	parts, err := api.Parts(ctx, whole)
	switch {
	case err != nil:
		return nil, cli.Pointed(err, a.Expression)
	case parts.Users == 0:
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf(
			"audience %q selects no user in generation %s (published version of segments and sets)",
			a.Expression, parts.Generation))
	}
	a.Generation = parts.Generation
	return parts, nil
}

// The method "pinned" returns the command-line flag --generation, with which a later run of the command selects the
// same users.
func (a *audience) pinned() string {
	if a.Generation == "" {
		return ""
	}
	return " with --generation " + a.Generation
}

// The type "whom" is the description of the audience expression in the output with --json.
type whom struct {
	Audience           string `json:"audience"`
	AudienceGeneration string `json:"audience_generation"`
}

// The method "whom" returns the description of the audience expression for the output, or nil if the audience is a
// file.
func (a *audience) whom() *whom {
	if a.Expression == "" {
		return nil
	}
	return &whom{a.Expression, a.Generation}
}

// The method "read" returns the distinct users in the audience file, if the user ids are dense (32-bit numbers).
func (a *audience) read(ctx context.Context, on *terminal.Streams) (*roaring.Bitmap, error) {
	users, err := a.idFile.read(ctx, on, a.File)
	if err == nil && users.IsEmpty() {
		err = terminal.WithStatus(terminal.BadInput, fmt.Errorf("audience %s: the file contains no users", a.File))
	}
	return users, err
}

// The method "list" returns the distinct users in the audience file, if the user ids are not dense 32-bit numbers.
func (a *audience) list(ctx context.Context, on *terminal.Streams, scheme *ids.Scheme) (*ingest.UserList, error) {
	users, err := a.idFile.list(ctx, on, a.File, scheme)
	if err == nil && users.Len() == 0 {
		err = terminal.WithStatus(terminal.BadInput, fmt.Errorf("audience %s: the file contains no users", a.File))
	}
	return users, err
}

// ofFile is the error text for a command line with flags about the format of a file, but without a file of user ids.
const ofFile = "--format, --column, --delimiter, --quote, --escape and --final-newline require a file of user ids"

// idFile holds the command-line flags for reading a file of user ids.
type idFile struct {
	Format string `default:"" enum:",${formats}" placeholder:"FORMAT" help:"Format of the file with the user ids: ${formats}. Default: the command detects the format from the file's name and content."`
	Column string `aliases:"id-column" placeholder:"NAME|N" help:"Name or number (from 1) of the column with the user ids. Default: the column 'user_id'. If this column is missing, the default is the column with another common name, such as customer_id. If no column name looks like an id, the default is the first column."`

	Delimiter ingest.Delimiter `placeholder:"C" help:"Character between columns: one byte. Default: a comma in CSV, a tab in TSV."`

	Quote  format.Mark `placeholder:"C" help:"Character that encloses fields in CSV and TSV files: one byte, or none. Default: a double quote in CSV, none in TSV."`
	Escape format.Mark `placeholder:"C" help:"Character that escapes delimiters, quotes and line breaks in CSV and TSV files: one byte, or none. Default: none in CSV, a backslash in TSV."`

	FinalNewline ingest.FinalNewline `name:"final-newline" enum:",required,optional" default:"" placeholder:"required|optional" help:"Whether the last line of a text file must end with a line break: required or optional. A missing line break is a sign of a truncated file. Default: required for files above 16 KiB, optional for smaller files."`
}

// The method "read" returns the distinct users in a file of dense user ids (32-bit numbers).
func (f *idFile) read(ctx context.Context, on *terminal.Streams, path string) (*roaring.Bitmap, error) {
	reader := ingest.NewReader(ingest.Config{Stdin: on.In})
	set, err := reader.ReadIDs(ctx, f.inputs(path))
	if err == nil {
		err = reader.Check()
	}
	sayMultiline(on, reader.Reports())
	if err != nil {
		return nil, unread(path, err)
	}
	return set.Bitmap().Roaring(), nil
}

// The method "list" returns the distinct users in a file of user ids that are not dense 32-bit numbers.
func (f *idFile) list(ctx context.Context, on *terminal.Streams, path string, scheme *ids.Scheme) (*ingest.UserList,
	error) {
	reader := ingest.NewReader(ingest.Config{Stdin: on.In, Scheme: scheme})
	users, err := reader.ReadUsers(ctx, f.inputs(path))
	if err == nil {
		err = reader.Check()
	}
	sayMultiline(on, reader.Reports())
	if err != nil {
		return nil, unread(path, err)
	}
	return users, nil
}

func (f *idFile) inputs(path string) []ingest.Input {
	return []ingest.Input{{
		Path: path, Format: ingest.Format(f.Format), IDColumn: f.Column,
		Delimiter: f.Delimiter, Quote: f.Quote, Escape: f.Escape, FinalNewline: f.FinalNewline,
	}}
}

func sayMultiline(on *terminal.Streams, files []ingest.FileReport) {
	for i := range files {
		if r := &files[i]; r.Multiline != nil { // rows with addresses, or rows joined by a missing quote
			on.Say("rows over several lines in %s: %s", r.File, r.Multiline)
		}
	}
}

// The function "unread" adds text to an error that occurred while the command read an audience file. If the content of
// the file is invalid, the function "unread" also adds the exit status for bad input.
func unread(path string, err error) error {
	var rows *ingest.BadRowsError
	var input *ingest.InputError
	switch {
	case errors.Is(err, ingest.ErrNoFinalNewline):
		return terminal.Hinted(terminal.WithStatus(terminal.BadInput, fmt.Errorf("read audience: %w", err)),
			"if the file is complete, add a line break at its end or use --final-newline optional")
	case errors.As(err, &rows):
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("audience %s: %w", path, err))
	case errors.As(err, &input):
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("read audience: %w", err))
	}
	return fmt.Errorf("read audience: %w", err)
}
