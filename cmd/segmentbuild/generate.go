package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"capper/internal/bitmap"
	"capper/internal/console"
	"capper/internal/segments"
)

type generateCommand struct {
	Users    uint32   `required:"" help:"Number of users; their ids begin at --first."`
	First    uint32   `default:"1" help:"The lowest id."`
	Segments []string `required:"" placeholder:"NAME=PERCENT" help:"Segments with their share of the users; the rest are in none."`
	Layout   string   `enum:"random,contiguous" default:"random" help:"random: every user's segment is drawn; contiguous: each segment is one range of ids."`
	As       string   `enum:"text,csv,parquet,roaring" default:"text" help:"One file per segment: text, csv (user_id,segment), parquet (user_id) in scattered order, or roaring."`
	Seed     uint64   `default:"1" help:"Another seed, other segments."`
	Out      string   `required:"" placeholder:"DIR" help:"Where to write NAME.txt, NAME.csv, NAME.parquet or NAME.roaring."`
}

// share is a segment with the upper end of its part of 2^32.
type share struct {
	name  string
	until uint64
}

// Run writes the files and prints their names.
func (c *generateCommand) Run(ctx context.Context, on *console.Streams) error {
	shares, err := c.shares()
	if err != nil {
		return console.Misuse(err)
	}
	if uint64(c.First)+uint64(c.Users) > 1<<32 {
		return console.Misuse(fmt.Errorf("--first %d and --users %d: ids end at 4294967295", c.First, c.Users))
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	files := make([]idFile, 0, len(shares))
	defer func() {
		for _, f := range files {
			f.whole.Abort()
		}
	}()
	for _, s := range shares {
		f, err := c.create(s.name)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if err := c.write(ctx, shares, files); err != nil {
		return err
	}
	for _, f := range files {
		if err := f.end(); err != nil {
			return err
		}
	}
	for i, f := range files { // all are written: now they take their places
		if err := f.whole.Commit(); err != nil {
			return err
		}
		fmt.Fprintln(on.Out, c.path(shares[i].name))
	}
	return nil
}

func (c *generateCommand) shares() ([]share, error) {
	var shares []share
	sum := 0.0
	for _, arg := range c.Segments {
		name, text, ok := strings.Cut(arg, "=")
		var part percentage
		if err := part.UnmarshalText([]byte(text)); !ok || err != nil {
			return nil, fmt.Errorf("--segments %q: want NAME=PERCENT", arg)
		}
		if err := segments.CheckName(name); err != nil {
			return nil, err
		}
		if sum += float64(part); sum > 100.0001 {
			return nil, fmt.Errorf("--segments: more than 100 %% in all")
		}
		shares = append(shares, share{name: name, until: uint64(sum / 100 * (1 << 32))})
	}
	return shares, nil
}

// write hands every user to the file of its segment. Ids come in scattered
// order, as an affine permutation of their range.
func (c *generateCommand) write(ctx context.Context, shares []share, files []idFile) error {
	n := uint64(c.Users)
	step := coprime(n)
	for i := range n {
		at := i
		if c.Layout == "random" {
			at = mulMod(i, step, n)
		}
		draw := at << 32 / max(n, 1)
		if c.Layout == "random" {
			draw = scramble(at^c.Seed<<32) >> 32
		}
		for k, s := range shares {
			if draw < s.until {
				if err := files[k].add(c.First + uint32(at)); err != nil {
					return err
				}
				break
			}
		}
		if i&(1<<20-1) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// mulMod is i * step mod n.
func mulMod(i, step, n uint64) uint64 {
	high, low := bits.Mul64(i, step)
	_, rest := bits.Div64(high, low, n)
	return rest
}

// coprime finds a step that visits every number below n, near the golden section of n.
func coprime(n uint64) uint64 {
	step := uint64(float64(n)*0.6180339887) | 1
	for gcd(step, n) != 1 {
		step += 2
	}
	return step
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// scramble is the finalizer of SplitMix64, https://prng.di.unimi.it/splitmix64.c.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// idFile is a file of ids in one of the formats.
type idFile struct {
	whole *console.File
	add   func(id uint32) error
	end   func() error // writes what add has kept
}

func (c *generateCommand) path(name string) string {
	extension := map[string]string{"text": ".txt", "csv": ".csv", "parquet": ".parquet", "roaring": ".roaring"}[c.As]
	return filepath.Join(c.Out, name+extension)
}

func (c *generateCommand) create(name string) (idFile, error) {
	whole, err := console.CreateFile(c.path(name))
	if err != nil {
		return idFile{}, err
	}
	out := bufio.NewWriterSize(whole, 1<<20)
	f := idFile{whole: whole}
	switch c.As {
	case "parquet":
		f.add, f.end = writeParquet(out)
	case "roaring":
		f.add, f.end = writeRoaring(out)
	case "csv":
		_, err = io.WriteString(out, "user_id,segment\n")
		f.add, f.end = writeLines(out, ","+name+"\n")
	default:
		f.add, f.end = writeLines(out, "\n")
	}
	return f, err
}

func writeLines(out *bufio.Writer, end string) (add func(id uint32) error, flush func() error) {
	var line []byte
	return func(id uint32) error {
		line = append(strconv.AppendUint(line[:0], uint64(id), 10), end...)
		_, err := out.Write(line)
		return err
	}, out.Flush
}

func writeParquet(out *bufio.Writer) (add func(id uint32) error, end func() error) {
	type row struct {
		UserID int64 `parquet:"user_id,snappy"`
	}
	w := parquet.NewGenericWriter[row](out, parquet.MaxRowsPerRowGroup(1<<20))
	batch := make([]row, 0, 1<<12)
	flush := func() error {
		_, err := w.Write(batch)
		batch = batch[:0]
		return err
	}
	return func(id uint32) error {
		if batch = append(batch, row{int64(id)}); len(batch) == cap(batch) {
			return flush()
		}
		return nil
	}, func() error { return errors.Join(flush(), w.Close(), out.Flush()) }
}

func writeRoaring(out *bufio.Writer) (add func(id uint32) error, end func() error) {
	set := new(bitmap.Set)
	return func(id uint32) error { set.Add(id); return nil }, func() error {
		_, err := out.Write(set.Bitmap().Bytes())
		return errors.Join(err, out.Flush())
	}
}
