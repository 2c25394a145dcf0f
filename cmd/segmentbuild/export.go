package main

import (
	"bufio"
	"io"
	"strconv"

	"capper/internal/bitmap"
	"capper/internal/console"
)

type exportCommand struct {
	segmentOf `embed:""`
	As        string `enum:"ids,bitmap" default:"ids" help:"ids: one per line, ascending; bitmap: the portable roaring format."`
	Output    string `short:"o" placeholder:"FILE" help:"Write to this file instead of standard output, which - means."`
}

// Run writes the users of one segment.
func (c *exportCommand) Run(e *env) error {
	b, err := c.read(e)
	if err != nil {
		return err
	}
	if c.Output == "" || c.Output == "-" {
		return c.write(e.data(), b)
	}
	return console.WriteFile(c.Output, func(w io.Writer) error { return c.write(w, b) })
}

func (c *exportCommand) write(w io.Writer, b *bitmap.Bitmap) error {
	if c.As == "bitmap" {
		_, err := w.Write(b.Bytes())
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var line []byte
	for id := range b.All() {
		line = append(strconv.AppendUint(line[:0], uint64(id), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}
