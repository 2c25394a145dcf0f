package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Directory is a Location that stores objects as files in a directory, on one machine or on a shared file system with
// working flock and rename. If the file system hangs, every method except Replace returns when its context ends.
type Directory struct {
	root string
	hung hung
}

var _ Location = (*Directory)(nil)

// NewDirectory returns a Directory whose objects are files below the path in the argument "root". The directory at this
// path need not exist yet.
func NewDirectory(root string) *Directory { return &Directory{root: filepath.Clean(root)} }

// lockName is the name of the file on which Replace holds a lock while it replaces a document.
const lockName = ".current.lock"

// TempPrefix begins the name of a file that a Directory has not completed yet. After a crash, an incomplete file may
// remain in the directory.
const TempPrefix = ".tmp-"

// Name implements Source.
func (d *Directory) Name() string { return d.root }

func (d *Directory) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// ReadTagged implements Source. The returned tag is a hash of the document's content.
func (d *Directory) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	body, err := d.Read(ctx, key, MaxDocumentBytes)
	if err != nil {
		return nil, "", err
	}
	newTag := tagOf(body)
	if newTag == tag {
		return nil, tag, ErrNotModified
	}
	return body, newTag, nil
}

// Read implements Source.
func (d *Directory) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	var body []byte
	err := d.hung.do(ctx, d.path(key), func() error {
		read, err := readRegular(d.path(key), limit)
		body = read
		return err
	})
	if err != nil {
		return nil, err
	}
	return body, nil
}

func tagOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func notFound(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, ErrNotFound)
	}
	return err
}

// Put implements Location.
func (d *Directory) Put(ctx context.Context, key string, body []byte) (bool, error) {
	var written bool
	err := d.hung.do(ctx, d.path(key), func() error {
		if stat, err := os.Stat(d.path(key)); err == nil && stat.Size() == int64(len(body)) {
			return nil
		}
		written = true
		return d.write(key, body)
	})
	if err != nil {
		return false, err
	}
	return written, nil
}

// Overwrite implements Location.
func (d *Directory) Overwrite(ctx context.Context, key string, body []byte) error {
	return d.hung.do(ctx, d.path(key), func() error { return d.write(key, body) })
}

// The method write replaces a file atomically. After a crash, the file has either the old or the new content; a
// concurrent reader also finds one of the two.
func (d *Directory) write(key string, body []byte) error {
	path := d.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), TempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // returns an error after the rename, because the temporary file no longer exists
	_, err = f.Write(body)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(path))
}

func syncDirectory(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Replace implements Location. Replace holds a file lock while it compares the tag and writes the document. If the
// process dies, the operating system releases this file lock.
func (d *Directory) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	if err := os.MkdirAll(d.root, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(d.path(lockName), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := lockFile(ctx, lock); err != nil {
		return "", err
	}
	_, now, err := d.ReadTagged(ctx, key, "")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", err
	}
	if now != tag {
		return "", ErrLostRace
	}
	return tagOf(body), d.write(key, body)
}

func lockFile(ctx context.Context, f *os.File) error {
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lock %s: %w", f.Name(), ctx.Err())
		case <-retry.C:
		}
	}
}

// List implements Source.
func (d *Directory) List(ctx context.Context, prefix string) ([]Object, error) {
	var list []Object
	err := d.hung.do(ctx, d.path(prefix), func() error {
		found, err := d.list(prefix)
		list = found
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// The method list returns the objects whose keys begin with the argument "prefix". The method list reads the folder in
// which the prefix ends, and skips subfolders whose keys cannot begin with the prefix.
func (d *Directory) list(prefix string) ([]Object, error) {
	var list []Object
	root := filepath.Dir(d.path(prefix+"x")) + string(filepath.Separator) // the separator makes WalkDir follow a link
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(d.root, path)
		if err != nil {
			return err
		}
		key := filepath.ToSlash(inside)
		switch {
		case e.IsDir() && path != root && !strings.HasPrefix(key+"/", prefix) && !strings.HasPrefix(prefix, key+"/"):
			return fs.SkipDir
		case !e.Type().IsRegular() || !strings.HasPrefix(key, prefix):
			return nil
		}
		stat, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			list = append(list, Object{Key: key, SizeBytes: stat.Size(), ChangedAt: stat.ModTime()})
		}
		return err
	})
	slices.SortFunc(list, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	return list, err
}

// Delete implements Location.
func (d *Directory) Delete(ctx context.Context, key string) error {
	return d.hung.do(ctx, d.path(key), func() error {
		if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
