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

	"github.com/RoaringBitmap/roaring/v2"
)

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

// ownFiles is the file in which a directory of results lists what was written
// into it: only that is ever removed.
const ownFiles = ".capper-filter"

// writeDir makes the directory hold these files, and none of an earlier run.
func writeDir(dir, extension string, files map[string]*roaring.Bitmap) error {
	for _, old := range ownedIn(dir) {
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var names []string
	for name := range files {
		names = append(names, name+extension)
	}
	slices.Sort(names)
	if err := os.WriteFile(filepath.Join(dir, ownFiles), []byte(strings.Join(names, "\n")), 0o644); err != nil {
		return err
	}
	for name, users := range files {
		if err := writeUsers(filepath.Join(dir, name+extension), users); err != nil {
			return err
		}
	}
	return nil
}

// ownedIn lists the files that an earlier run wrote into the directory.
func ownedIn(dir string) (names []string) {
	list, err := os.ReadFile(filepath.Join(dir, ownFiles))
	if err != nil {
		return nil
	}
	for _, name := range strings.Fields(string(list)) {
		if name == filepath.Base(name) {
			names = append(names, name)
		}
	}
	return names
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

// check finds out before the blast whether the outputs can be written, and that
// none of them takes the place of another or of the audience.
func (o *outputs) check(audience string) error {
	for flag, dir := range map[string]string{"--denied-dir": o.DeniedDir, "--waves-dir": o.WavesDir} {
		if dir == "" {
			continue
		}
		if err := checkDir(flag, dir); err != nil {
			return err
		}
	}
	for flag, file := range map[string]string{"--allowed": o.Allowed, "--unavailable": o.Unavailable} {
		if file == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s %s: its directory: %w", flag, file, cmp.Or(err, fs.ErrNotExist))
		}
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s %s: must be a file, and is %s", flag, file, kindOf(info))
		}
		if same(file, audience) {
			return fmt.Errorf("%s %s: is the audience, which it would overwrite", flag, file)
		}
	}
	if same(o.Allowed, o.Unavailable) {
		return fmt.Errorf("--allowed and --unavailable: must be two files, and both are %s", o.Allowed)
	}
	if same(o.DeniedDir, o.WavesDir) {
		return fmt.Errorf("--denied-dir and --waves-dir: must be two directories, and both are %s", o.DeniedDir)
	}
	return nil
}

func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "a directory"
	}
	return "no regular file"
}

// checkDir demands a directory that is new, empty, or of an earlier run: files
// of other origin are not to be mixed with results.
func checkDir(flag, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s %s: %w", flag, dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, dir, err)
	}
	owned := append(ownedIn(dir), ownFiles)
	for _, entry := range entries {
		if !slices.Contains(owned, entry.Name()) {
			return fmt.Errorf("%s %s: holds %s, which no run of this command wrote: name a directory of its own", flag, dir, entry.Name())
		}
	}
	return nil
}

// same reports whether both paths are given and lead to the same place.
func same(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	absA, errA := filepath.Abs(a)
	absB, errB := filepath.Abs(b)
	return errA == nil && errB == nil && absA == absB
}
