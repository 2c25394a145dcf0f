package database

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The function Extract writes the files of a verified backup archive into the directory, and makes them durable. The
// function Extract writes the marker file last, because this file makes the directory a database.
func Extract(archive io.ReadSeeker, m *Manifest, dir string) error {
	named := make(map[string]File, len(m.Files))
	var notes []string
	for _, file := range m.Files {
		named[file.Name] = file
		if isNoted(file.Name) {
			notes = append(notes, file.Name)
		}
	}
	if err := replaceFile(vfs.Default, filepath.Join(dir, NotesFile),
		[]byte(strings.Join(notes, "\n")+"\n")); err != nil {
		return err
	}
	err := each(archive, func(h *tar.Header, content io.Reader) error {
		file, ok := named[h.Name]
		if !ok {
			return nil
		}
		if leads(h.Name) {
			if err := syncDirectory(dir); err != nil {
				return err
			}
		}
		return extract(filepath.Join(dir, file.Name), file, content)
	})
	return errors.Join(err, syncDirectory(dir))
}

func extract(path string, want File, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // private: logs show who received what
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
		return fmt.Errorf("file %s: %w: SHA-256 must be %s, got %s", want.Name, ErrDamaged, want.SHA256, got)
	}
	return nil
}

func syncDirectory(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
