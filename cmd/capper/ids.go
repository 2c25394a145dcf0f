package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	"capper/internal/cli"
	"capper/internal/terminal"
)

// idsCommand is the command `capper ids FILE`.
type idsCommand struct {
	cli.Service
	File string `arg:"" optional:"" default:"-" help:"Text file with one user id per line; - is standard input."`
}

// Help returns the help text below the flags.
func (c *idsCommand) Help() string {
	return "Prints one line for each user id: the id, a tab, and the id's image as 16 hexadecimal digits. The image " +
		"is the number by which the store (database of sends) identifies the user. The image of an id never changes. " +
		"The store sorts users by image, so the service decides faster about a list of users in this order. The " +
		"image of a dense id (32-bit number) is the id itself."
}

// longestLine is the maximum length in bytes of a line in the file of ids. No valid id is as long.
const longestLine = 64 << 10

// The method Run prints each id of the file with its id image (64-bit keyed hash of the id).
func (c *idsCommand) Run(ctx context.Context, on *terminal.Streams) (err error) {
	service, err := c.Client()
	if err != nil {
		return err
	}
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return err
	}
	from := on.In
	if c.File != stdin {
		file, err := os.Open(c.File)
		if err != nil {
			return terminal.WithStatus(terminal.BadInput, err)
		}
		defer file.Close()
		from = file
	}
	out := bufio.NewWriterSize(on.Data(), 1<<16)
	defer func() { err = errors.Join(err, out.Flush()) }()
	parser, lines := scheme.NewParser(), bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	var row []byte
	for n := 1; lines.Scan(); n++ {
		id := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		image, err := parser.Parse(id)
		if err != nil {
			return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s:%d: %w", c.File, n, err))
		}
		if row, err = scheme.Canonical(row[:0], id); err != nil {
			return err
		}
		row = append(row, '\t')
		row = hex.AppendEncode(row, binary.BigEndian.AppendUint64(nil, image))
		if _, err := out.Write(append(row, '\n')); err != nil {
			return err
		}
		if n%10_000 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: a line is longer than the longest possible id",
			c.File))
	}
	return lines.Err()
}
