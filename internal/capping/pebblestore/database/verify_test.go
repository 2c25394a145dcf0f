package database

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entry is one file of an archive.
type entry struct {
	name, content string
}

// written returns the files of an archive with three database files, without the checksum.
func written(t *testing.T) (entries []entry) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"000001.log", "000002.sst", "marker.manifest.000001"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("of "+name), 0o600))
	}
	var archive bytes.Buffer
	require.NoError(t, Write(&archive, dir, &Manifest{Store: "s", Mark: 1, At: time.Unix(1, 0)}))
	_, err := Verify(bytes.NewReader(archive.Bytes()))
	require.NoError(t, err)
	require.NoError(t, each(bytes.NewReader(archive.Bytes()), func(h *tar.Header, r io.Reader) error {
		content, err := io.ReadAll(r)
		if h.Name != sumName {
			entries = append(entries, entry{h.Name, string(content)})
		}
		return err
	}))
	return entries
}

// archived returns an archive of the files with a correct checksum.
func archived(t *testing.T, entries []entry) *bytes.Reader {
	t.Helper()
	var archive bytes.Buffer
	to := tar.NewWriter(&archive)
	for _, e := range entries {
		require.NoError(t, add(to, e.name, []byte(e.content)))
	}
	require.NoError(t, to.Flush())
	sum := sha256.Sum256(archive.Bytes())
	end, err := ending(sum[:])
	require.NoError(t, err)
	archive.Write(end)
	return bytes.NewReader(archive.Bytes())
}

// TestArchiveOfOtherFiles checks that an archive with a correct checksum but other files than its manifest
// is rejected before any write.
func TestArchiveOfOtherFiles(t *testing.T) {
	t.Parallel()
	_, err := Verify(archived(t, written(t)))
	require.NoError(t, err, "made again as it was")
	for name, of := range map[string]struct {
		change func([]entry) []entry
		want   string
	}{
		"another in its place": {func(e []entry) []entry { e[1].name = "000003.sst"; return e },
			`names file "000002.sst", which the backup does not contain`},
		"one missing": {func(e []entry) []entry { return append(e[:1], e[2:]...) },
			`names file "000002.sst", which the backup does not contain`},
		"one more": {func(e []entry) []entry { return append(e, entry{"000009.sst", "x"}) },
			`file "000009.sst" is not named in manifest.json`},
		"twice": {func(e []entry) []entry { return append(e, e[0]) }, `contains entry "000001.log" twice`},
		"another size": {func(e []entry) []entry { e[1].content += "more"; return e },
			`file "000002.sst" has 17 bytes, but must have 13 according to manifest.json`},
		"no manifest": {func(e []entry) []entry { return e[:3] }, "manifest.json is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := archived(t, of.change(written(t)))
			_, err := Verify(archive)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, of.want)
			dir := filepath.Join(t.TempDir(), "store")
			_, err = Restore(archive, dir, true, time.Now())
			require.ErrorIs(t, err, ErrDamaged)
			require.NoDirExists(t, dir)
		})
	}
}

// TestArchiveOfAnotherKind checks that an intact archive in an unknown format returns an error of the input,
// not of the machine.
func TestArchiveOfAnotherKind(t *testing.T) {
	t.Parallel()
	manifest := func(before, after string) func([]entry) []entry {
		return func(e []entry) []entry {
			last := &e[len(e)-1]
			require.Contains(t, last.content, before)
			last.content = strings.Replace(last.content, before, after, 1)
			return e
		}
	}
	for name, of := range map[string]struct {
		change func([]entry) []entry
		want   string
	}{
		"a later version": {manifest(`"version": 1`, `"version": 3`),
			"version 3 is too new for this program, which reads versions up to 2"},
		"ids missing": {manifest(`"version": 1`, `"version": 2`), "ids are of the kind dense, which " +
			"version 2 of the file does not allow"},
		"another kind": {manifest(kind, "a diary"), `kind "a diary"`},
		"no JSON":      {manifest("{", "["), "manifest.json"},
		"a way out": {func(e []entry) []entry { e[1].name = "../000002.sst"; return e },
			`entry "../000002.sst" of the backup archive must be a regular file`},
		"a named way out":   {manifest("000002.sst", "../2.sst"), `file name "../2.sst"`},
		"a store of nobody": {manifest(`"store": "s"`, `"store": ""`), "the store or its files are not named"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Verify(archived(t, of.change(written(t))))
			var other *FormatError
			require.ErrorAs(t, err, &other)
			require.ErrorContains(t, err, of.want)
		})
	}
}
