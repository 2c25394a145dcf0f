package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
)

// results gathers what a blast decided. Every user is in exactly one of
// allowed, the denied and unavailable.
type results struct {
	allowed, replayed, unavailable *roaring.Bitmap
	denied                         map[string]*roaring.Bitmap // by limit
	waves                          map[time.Time]*roaring.Bitmap
	summary                        client.Summary
	generation, configVersion      string
	again                          bool // what is added was requested before
}

func newResults() *results {
	return &results{
		allowed: roaring.New(), replayed: roaring.New(), unavailable: roaring.New(),
		denied: map[string]*roaring.Bitmap{}, waves: map[time.Time]*roaring.Bitmap{},
	}
}

// add takes the result of one batch.
func (r *results) add(batch *client.FilterResult) {
	r.allowed.Or(batch.AllowedBitmap)
	r.replayed.Or(batch.ReplayedBitmap)
	r.unavailable.Or(batch.UnavailableBitmap)
	for limit, users := range batch.DeniedBitmaps {
		merge(r.denied, limit, users)
	}
	for _, wave := range batch.Waves {
		merge(r.waves, wave.From, wave.Bitmap)
	}
	if r.again {
		batch.Summary.Requested = 0
		for name, segment := range batch.Summary.Segments {
			segment.Requested = 0
			batch.Summary.Segments[name] = segment
		}
	}
	r.summary.Add(&batch.Summary)
	r.generation, r.configVersion = batch.Generation, batch.ConfigVersion
}

// retry takes out the unavailable users, to be asked for again.
func (r *results) retry() *roaring.Bitmap {
	users := r.unavailable
	r.unavailable, r.summary.Unavailable, r.again = roaring.New(), 0, true
	return users
}

// answered reports whether the service has answered at all.
func (r *results) answered() bool { return r.generation != "" }

// missing is those of the users of whom nothing is known, not even that they
// are unavailable.
func (r *results) missing(users *roaring.Bitmap) *roaring.Bitmap {
	known := roaring.FastOr(r.allowed, r.unavailable)
	for _, denied := range r.denied {
		known.Or(denied)
	}
	return roaring.AndNot(users, known)
}

func merge[K comparable](into map[K]*roaring.Bitmap, key K, users *roaring.Bitmap) {
	if into[key] == nil {
		into[key] = roaring.New()
	}
	into[key].Or(users)
}

// outputs are the files that a blast writes. Each is written whole or not at
// all; a name that ends in .roaring gets a bitmap, any other one id a line.
type outputs struct {
	Allowed     string `placeholder:"FILE" help:"Write the users who may be sent to; a bitmap if it ends in .roaring, else ids."`
	DeniedDir   string `placeholder:"DIR" help:"Write the denied users of each limit into DIR/LIMIT.txt (.roaring as for --allowed)."`
	WavesDir    string `placeholder:"DIR" help:"Write the denied users by the hour in which they become eligible, into DIR/2006-01-02T15Z.txt."`
	Unavailable string `placeholder:"FILE" help:"Write the users who could not be decided."`
}

func (o *outputs) write(r *results) error {
	extension := ".txt"
	if strings.HasSuffix(o.Allowed, ".roaring") {
		extension = ".roaring"
	}
	var errs []error
	if o.DeniedDir != "" {
		files := map[string]*roaring.Bitmap{}
		for limit, users := range r.denied {
			files[limit] = users
		}
		errs = append(errs, writeDir(o.DeniedDir, extension, files))
	}
	if o.WavesDir != "" {
		files := map[string]*roaring.Bitmap{}
		for from, users := range r.waves {
			files[from.UTC().Format("2006-01-02T15Z")] = users
		}
		errs = append(errs, writeDir(o.WavesDir, extension, files))
	}
	if o.Unavailable != "" {
		errs = append(errs, writeUsers(o.Unavailable, r.unavailable))
	}
	if o.Allowed != "" { // last: it says that the others are complete
		errs = append(errs, writeUsers(o.Allowed, r.allowed))
	}
	return errors.Join(errs...)
}

// writeDir makes the directory hold these files, and none of an earlier run.
func writeDir(dir, extension string, files map[string]*roaring.Bitmap) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return err
	}
	for _, file := range old {
		if files[strings.TrimSuffix(filepath.Base(file), extension)] == nil {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	for name, users := range files {
		if err := writeUsers(filepath.Join(dir, name+extension), users); err != nil {
			return err
		}
	}
	return nil
}

// writeUsers writes the file under another name and renames it when it is
// whole.
func writeUsers(file string, users *roaring.Bitmap) (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".capper-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temporary.Name())
		}
	}()
	write := writeIDs
	if strings.HasSuffix(file, ".roaring") {
		write = writeBitmap
	}
	err = errors.Join(write(temporary, users), temporary.Chmod(0o644), temporary.Sync(), temporary.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return os.Rename(temporary.Name(), file)
}

func writeBitmap(to io.Writer, users *roaring.Bitmap) error {
	users.RunOptimize()
	_, err := users.WriteTo(to)
	return err
}

func writeIDs(to io.Writer, users *roaring.Bitmap) error {
	out := bufio.NewWriterSize(to, 1<<16)
	var line []byte
	for ids := users.Iterator(); ids.HasNext(); {
		line = append(strconv.AppendUint(line[:0], uint64(ids.Next()), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// check finds out before the blast whether the outputs can be written.
func (o *outputs) check() error {
	for _, dir := range []string{o.DeniedDir, o.WavesDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	for _, file := range []string{o.Allowed, o.Unavailable} {
		if file == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return fmt.Errorf("write %s: its directory: %w", file, cmp.Or(err, fs.ErrNotExist))
		}
	}
	return nil
}

// sortedCounts lists the counts by descending number, then by name.
func sortedCounts(counts map[string]int) (names []string) {
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names
}
