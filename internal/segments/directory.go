package segments

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// directory is a store in a directory, for one machine or a shared file system
// with working flock and rename.
type directory struct {
	root string
	hung hung
}

var _ Store = (*directory)(nil)

// lockName guards the replacing of current.json and of the documents beside it.
const lockName = ".current.lock"

// tempPrefix begins the names of files that are not complete yet. A crash may leave one behind; gc removes it.
const tempPrefix = ".tmp-"

func (d *directory) Location() string { return d.root }

func (d *directory) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// ReadTagged implements Source; the tag is the content's hash.
func (d *directory) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	body, err := d.Read(ctx, key, maxDocumentBytes)
	if err != nil {
		return nil, "", err
	}
	newTag := hash(body)
	if newTag == tag {
		return nil, tag, ErrNotModified
	}
	return body, newTag, nil
}

func (d *directory) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
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

func notFound(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, ErrNotFound)
	}
	return err
}

func (d *directory) Put(ctx context.Context, key string, body []byte) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if stat, err := os.Stat(d.path(key)); err == nil && stat.Size() == int64(len(body)) {
		return false, nil
	}
	return true, d.write(key, body)
}

// Overwrite implements Store.
func (d *directory) Overwrite(ctx context.Context, key string, body []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.write(key, body)
}

// write replaces a file in one step: a reader, and a machine that loses power,
// sees the old file or the new one.
func (d *directory) write(key string, body []byte) error {
	path := d.path(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after the rename there is nothing left to remove
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

// Replace implements Store: compare and write under a file lock, which
// the system releases when the process dies.
func (d *directory) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
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
	return hash(body), d.write(key, body)
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

func (d *directory) List(ctx context.Context, prefix string) ([]Object, error) {
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

func (d *directory) list(prefix string) ([]Object, error) {
	var list []Object
	folder := filepath.Dir(d.path(prefix + "x"))
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		key := prefix[:strings.LastIndex(prefix, "/")+1] + e.Name()
		if !e.Type().IsRegular() || !strings.HasPrefix(key, prefix) {
			continue
		}
		stat, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Object{Key: key, SizeBytes: stat.Size(), ChangedAt: stat.ModTime()})
	}
	return list, nil
}

func (d *directory) Delete(ctx context.Context, key string) error {
	return d.hung.do(ctx, d.path(key), func() error {
		if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
