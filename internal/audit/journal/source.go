package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"capper/internal/audit"
	"capper/internal/objects"
)

// Source returns a view of the audit location that includes the latest records of this instance. If the location is in
// S3, the view also contains the audit files of the spool directory, as open files. Callers of Source should call Flush
// first.
func (j *Journal) Source() objects.Source {
	if !objects.IsURL(j.To) {
		return j.place
	}
	return &withRoom{Source: j.place, dir: j.Room(), prefix: audit.OpenPrefix + j.instance + "/"}
}

// The type withRoom is a view of an audit location that also shows the files of a spool directory, as objects below a
// prefix.
type withRoom struct {
	objects.Source
	dir, prefix string
}

// List implements objects.Source.
func (s *withRoom) List(ctx context.Context, prefix string) ([]objects.Object, error) {
	if !strings.HasPrefix(prefix, audit.OpenPrefix) {
		return s.Source.List(ctx, prefix)
	}
	entries, err := os.ReadDir(s.dir) // read first: a file that is uploaded meanwhile then appears twice
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	list, err := s.Source.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		stat, err := e.Info()
		if key := s.prefix + e.Name(); err == nil && stat.Mode().IsRegular() && strings.HasPrefix(key, prefix) {
			list = append(list, objects.Object{Key: key, SizeBytes: stat.Size(), ChangedAt: stat.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b objects.Object) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}

// Read implements objects.Source.
func (s *withRoom) Read(ctx context.Context, key string, limit int64) ([]byte, error) {
	name, own := strings.CutPrefix(key, s.prefix)
	if !own {
		return s.Source.Read(ctx, key, limit)
	}
	body, err := os.ReadFile(filepath.Join(s.dir, filepath.Base(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %s: %w", key, objects.ErrNotFound)
	case err == nil && int64(len(body)) > limit:
		return nil, fmt.Errorf("%s: the file has %d bytes, but at most %d are allowed", key, len(body), limit)
	}
	return body, err
}
