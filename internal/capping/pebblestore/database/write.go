package database

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	build "capper/internal/version"
)

// The function Write writes an archive of the files in the directory, with the manifest m, and sets m.Files. The files
// in the directory must not change during the call of Write.
func Write(to io.Writer, dir string, m *Manifest) error {
	names, err := list(dir)
	if err != nil {
		return err
	}
	sum := sha256.New()
	archive := tar.NewWriter(io.MultiWriter(to, sum))
	m.Files, m.Program = nil, build.Current().Version
	for _, name := range names {
		file, err := write(archive, dir, name)
		if err != nil {
			return fmt.Errorf("file %s: %w", name, err)
		}
		m.Files = append(m.Files, file)
	}
	content, err := m.encode()
	if err != nil {
		return err
	}
	if err := add(archive, manifestName, content); err != nil {
		return err
	}
	if err := archive.Flush(); err != nil {
		return err
	}
	end, err := ending(sum.Sum(nil))
	if err != nil {
		return err
	}
	_, err = to.Write(end)
	return err
}

// The function "list" returns the names of the files in the database's directory, with the marker file last.
func list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && entry.Name() != NotesFile {
			names = append(names, entry.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case leads(a) == leads(b):
			return strings.Compare(a, b)
		case leads(a):
			return 1
		}
		return -1
	})
	return names, nil
}

// The function "write" copies one file of the directory into the backup archive.
func write(archive *tar.Writer, dir, name string) (File, error) {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return File{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return File{}, err
	}
	if err := archive.WriteHeader(header(name, info.Size())); err != nil {
		return File{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(archive, sum), file)
	if err == nil && n != info.Size() {
		err = fmt.Errorf("copy a file to the backup: the file had %d bytes, but %d were read", info.Size(), n)
	}
	return File{name, n, hex.EncodeToString(sum.Sum(nil))}, err
}

// The function "header" returns the tar header of a file. The tar header depends only on name and size, and contains no
// time and no owner.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Size: size, Mode: int64(fs.FileMode(0o644)), Typeflag: tar.TypeReg,
		Format: tar.FormatPAX}
}

func add(archive *tar.Writer, name string, content []byte) error {
	if err := archive.WriteHeader(header(name, int64(len(content)))); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}

// The function "ending" returns the last bytes of an archive, from the tar header of the checksum file on.
func ending(sum []byte) ([]byte, error) {
	var end bytes.Buffer
	archive := tar.NewWriter(&end)
	if err := add(archive, sumName, []byte(hex.EncodeToString(sum)+"\n")); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if end.Len() != endSize {
		return nil, fmt.Errorf("write the end of the backup archive: the end must have %d bytes, got %d",
			endSize, end.Len())
	}
	return end.Bytes(), nil
}

// endSize is the size in bytes of the end of every archive: a tar header, one block of content and two empty blocks.
const endSize = 4 * 512
