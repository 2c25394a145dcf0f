package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/internal/ids"
	"capper/internal/terminal"
)

// The type Outputs holds the command-line flags for the files that `capper filter` writes. `capper filter` writes each
// of these files atomically, except pipes and standard output (-). An output file whose name ends in ".roaring"
// contains a bitmap of users. All other output files contain one user id per line.
type Outputs struct {
	Allowed     string `placeholder:"FILE" help:"Output file for the allowed users: a bitmap if the name ends in .roaring, otherwise one user id per line. With -, the ids go to standard output, and the report goes to standard error."`
	Replayed    string `placeholder:"FILE" help:"Output file for the allowed users whose send an earlier run, or an earlier call of this run, had already recorded. The output file of --allowed also contains these users."`
	DeniedDir   string `placeholder:"DIR" help:"Output directory for the denied users, with one file for each limit or rule that denied users: LIMIT.txt, or LIMIT.roaring if --allowed names a .roaring file."`
	WavesDir    string `placeholder:"DIR" help:"Output directory for the denied users, with one file for each hour (UTC), such as 2026-11-22T15Z.txt. A file contains the users whose denials end in this hour. Users whose denial has no known end are in no file. The file waves.json contains, for each hour, the time from which the users can be retried."`
	Unavailable string `placeholder:"FILE" help:"Output file for the users about whom the service could not decide, for a later retry."`
}

// The constant standard is the file name that means standard output.
const standard = "-"

// The type output describes a file of users that the command writes: the file name, and the flag that names the file.
type output struct{ flag, file string }

// The method "files" returns the output files in the order in which the command writes them. The command writes the
// file of allowed users last: if this file exists, all other files are complete.
func (o *Outputs) files() (list []output) {
	for _, f := range []output{{"--unavailable", o.Unavailable}, {"--replayed", o.Replayed}, {"--allowed", o.Allowed}} {
		if f.file != "" {
			list = append(list, f)
		}
	}
	return list
}

// CheckKind returns an error if one of the output files cannot contain user ids of the kind, such as a bitmap of UUIDs.
func (o *Outputs) CheckKind(kind ids.Kind) error {
	for _, f := range o.files() {
		if kind != ids.Dense && strings.HasSuffix(f.file, ".roaring") {
			return fmt.Errorf("%s %s: a bitmap holds only dense ids (32-bit integers), "+
				"but this deployment has ids of the kind %s: "+
				"name a file with another ending, such as .txt", f.flag, f.file, kind)
		}
	}
	return nil
}

// ReportTo returns the writer for the report of the command: standard error if users are written to standard output,
// and otherwise standard output.
func (o *Outputs) ReportTo(on *terminal.Streams) io.Writer {
	for _, f := range o.files() {
		if f.file == standard {
			return on.Err
		}
	}
	return on.Out
}

// The method extension returns the file name extension of the files that the command writes to directories.
func (o *Outputs) extension() string {
	if strings.HasSuffix(o.Allowed, ".roaring") {
		return ".roaring"
	}
	return ".txt"
}

// The method Write writes the output files. If writing a file fails, Write still writes the other output files, except
// the file of allowed users.
func (o *Outputs) Write(on *terminal.Streams, r *Results) error {
	var errs []error
	if o.DeniedDir != "" {
		files := map[string]content{}
		for limit, users := range r.Denied {
			files[limit+o.extension()] = r.usersOf(limit+o.extension(), users)
		}
		errs = append(errs, writeDir(o.DeniedDir, files))
	}
	if o.WavesDir != "" {
		errs = append(errs, o.writeWaves(r))
	}
	users := map[string]*roaring.Bitmap{"--unavailable": r.Unavailable, "--replayed": r.Replayed,
		"--allowed": r.Allowed}
	for _, f := range o.files() {
		if f.flag == "--allowed" && errors.Join(errs...) != nil {
			break
		}
		write := r.usersOf(f.file, users[f.flag])
		if f.file == standard {
			errs = append(errs, during("write "+f.flag, write(on.Data())))
			continue
		}
		errs = append(errs, during("write "+f.flag, terminal.WriteFile(f.file, write)))
	}
	return errors.Join(errs...)
}

// WaveReport describes a wave (denied users who may be retried in the same hour) in the output of --json and in
// waves.json.
type WaveReport struct {
	From    time.Time `json:"from"`
	ReadyAt time.Time `json:"ready_at"`
	Users   uint64    `json:"users"`
	File    string    `json:"file"` // name of the wave's file in the directory
}

// The method Waves lists the waves (denied users by the hour in which their denial ends) in the order of time, with the
// names of their files.
func (o *Outputs) Waves(r *Results) []WaveReport {
	list := []WaveReport{}
	for from, w := range r.waves {
		list = append(list, WaveReport{from, w.readyAt, w.users.GetCardinality(), from.Format(waveName) +
			o.extension()})
	}
	slices.SortFunc(list, func(a, b WaveReport) int { return a.From.Compare(b.From) })
	return list
}

// waveName is the time layout for the file name of a wave (denied users whose denials end in the same hour). The name
// of a wave's file contains the hour.
const waveName = "2006-01-02T15Z"

// wavesFile is the name of the file that lists the waves (denied users whose denials end in the same hour). For each
// wave, the file waves.json contains the time from which a caller may retry the users.
const wavesFile = "waves.json"

func (o *Outputs) writeWaves(r *Results) error {
	files := map[string]content{}
	reports := o.Waves(r)
	for _, w := range reports {
		files[w.File] = r.usersOf(w.File, r.waves[w.From].users)
	}
	files[wavesFile] = func(to io.Writer) error { return terminal.JSON(to, reports) }
	return writeDir(o.WavesDir, files)
}

// The type content is a function that writes the contents of an output file.
type content func(to io.Writer) error

// usersOf returns a function that writes users in the format that the file name selects: a bitmap or lines of ids.
func (r *Results) usersOf(name string, users *roaring.Bitmap) content {
	if r.IDs != nil {
		return func(to io.Writer) error { return r.IDs.write(to, users) }
	}
	if strings.HasSuffix(name, ".roaring") {
		return func(to io.Writer) error { return writeBitmap(to, users) }
	}
	return func(to io.Writer) error { return writeIDs(to, users) }
}

// ownFiles is the name of the file that lists, in each output directory, the files that the command has written to the
// directory. When the command writes to the directory again, it removes only files that ".capper-filter" lists.
const ownFiles = ".capper-filter"

// writeDir writes output files to a directory, and removes the files that an earlier run of the command wrote to this
// directory.
func writeDir(dir string, files map[string]content) error {
	for _, old := range ownedIn(dir) {
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	names := slices.Sorted(maps.Keys(files))
	list := func(to io.Writer) error {
		_, err := io.WriteString(to, strings.Join(names, "\n"))
		return err
	}
	if err := terminal.WriteFile(filepath.Join(dir, ownFiles), list); err != nil {
		return err
	}
	for _, name := range names {
		if err := terminal.WriteFile(filepath.Join(dir, name), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// ownedIn lists the files in a directory that an earlier run of the command wrote, including the temporary files of a
// killed run.
func ownedIn(dir string) (names []string) {
	list, err := os.ReadFile(filepath.Join(dir, ownFiles))
	if err == nil {
		for _, name := range strings.Fields(string(list)) {
			if name == filepath.Base(name) {
				names = append(names, name)
			}
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if terminal.IsPart(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

func writeBitmap(to io.Writer, users *roaring.Bitmap) error {
	users.RunOptimize()
	_, err := users.WriteTo(to)
	return err
}

func writeIDs(to io.Writer, users *roaring.Bitmap) error {
	out := bufio.NewWriterSize(to, 1<<16)
	var line []byte
	for each := users.Iterator(); each.HasNext(); {
		line = append(strconv.AppendUint(line[:0], uint64(each.Next()), 10), '\n')
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// The method Check checks, before the first call to the service, that the command can write all output files. The
// method Check also returns an error if two output files are the same file, or if an output file is the audience file.
func (o *Outputs) Check(audience string) error {
	for flag, dir := range map[string]string{"--denied-dir": o.DeniedDir, "--waves-dir": o.WavesDir} {
		if dir == "" {
			continue
		}
		if err := checkDir(flag, dir); err != nil {
			return err
		}
	}
	files := o.files()
	for i, f := range files {
		if err := f.check(audience); err != nil {
			return err
		}
		for _, other := range files[:i] {
			if f.file == other.file || same(f.file, other.file) {
				return fmt.Errorf("%s and %s must be different files, but both are %s", f.flag, other.flag, f.file)
			}
		}
	}
	if same(o.DeniedDir, o.WavesDir) {
		return fmt.Errorf("--denied-dir and --waves-dir must be different directories, but both are %s", o.DeniedDir)
	}
	return nil
}

// The method "check" checks that the command can write the output file. Pipes and devices always pass the check.
func (f output) check(audience string) error {
	if f.file == standard {
		return nil
	}
	if err := terminal.CheckTarget(f.file); err != nil {
		return fmt.Errorf("%s %w", f.flag, err)
	}
	if same(f.file, audience) {
		return fmt.Errorf("%s %s must not be the audience file, which the command would overwrite", f.flag, f.file)
	}
	return nil
}

// checkDir returns an error unless the directory is new, is empty, or contains only files of an earlier run of the
// command. checkDir prevents a directory that mixes the command's output with other files.
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
			return fmt.Errorf(
				"%s %s: the directory contains %s, which this command did not write: name an empty directory",
				flag, dir, entry.Name())
		}
	}
	return nil
}

// The function "same" reports whether both paths are set and refer to the same file.
func same(a, b string) bool {
	if a == "" || b == "" || a == standard || b == standard {
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

// The function "during" adds the name of the failed action to an error.
func during(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
