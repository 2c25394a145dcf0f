package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// LocalFiles reads input files from the file system.
type LocalFiles struct{}

var _ Files = LocalFiles{}

// Glob implements Files. Links to directories are entered, by "**" as by "*/".
func (LocalFiles) Glob(ctx context.Context, pattern string) (Matches, error) {
	if IsURL(pattern) {
		return Matches{}, fmt.Errorf("%q: want a path or s3://bucket/key", pattern)
	}
	if !hasWildcard(pattern) {
		return Matches{Names: []string{pattern}}, nil
	}
	rule, err := parsePattern(filepath.ToSlash(filepath.Clean(pattern)))
	if err != nil {
		return Matches{}, err
	}
	if !rule.anyDepth() {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return Matches{}, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		return rule.sort(names), nil
	}
	names, err := walkLocal(ctx, filepath.Dir(rule.prefix()+"x"))
	return rule.sort(names), err
}

func hasWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?[") }

// Open implements Files.
func (LocalFiles) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, notFound(name, err)
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if stat.IsDir() {
		return nil, 0, errors.Join(fmt.Errorf("%s is a directory: name files, or use a pattern such as %s", name, filepath.Join(name, "*.csv")), f.Close())
	}
	if !stat.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, stat.Size(), nil
}
