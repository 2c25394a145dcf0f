package objects

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"capper/internal/objects/s3test"
)

// TestPatternsMatchTheSameEverywhere checks that a pattern matches the same names in a directory and
// in a bucket.
func TestPatternsMatchTheSameEverywhere(t *testing.T) {
	t.Parallel()
	keys := []string{
		"e/a.csv", "e/b.csv", "e/.b.csv.crc", "e/b.csv.crc", "e/_SUCCESS", "e/.hidden.csv", "e/_tmp.csv",
		"e/x/c.csv", "e/x/y/d.csv", "e/x/y/z/e.csv", "e/x/y/z/e.txt",
		"e/_temporary/0/f.csv", "e/.snapshot/g.csv", "e/_date=2026-01-01/h.csv", "f/i.csv",
	}
	root, bucket := t.TempDir(), s3test.Bucket(t)
	for _, key := range keys {
		path := filepath.Join(root, filepath.FromSlash(key))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("1\n"), 0o644))
		_, err := s3test.Client().PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
			Body: bytes.NewReader([]byte("1\n"))})
		require.NoError(t, err)
	}
	for _, c := range []struct{ pattern, names, leftOut string }{
		{"e/*.csv", "e/a.csv e/b.csv", "e/.hidden.csv e/_tmp.csv"},
		{"e/*/*.csv", "e/_date=2026-01-01/h.csv e/x/c.csv", "e/.snapshot/g.csv"},
		{"e/**/*.csv", "e/_date=2026-01-01/h.csv e/a.csv e/b.csv e/x/c.csv e/x/y/d.csv e/x/y/z/e.csv",
			"e/.hidden.csv e/.snapshot/g.csv e/_temporary/0/f.csv e/_tmp.csv"},
		{"**/*.csv", "e/_date=2026-01-01/h.csv e/a.csv e/b.csv e/x/c.csv e/x/y/d.csv e/x/y/z/e.csv f/i.csv",
			"e/.hidden.csv e/.snapshot/g.csv e/_temporary/0/f.csv e/_tmp.csv"},
		{"e/x/**", "e/x/c.csv e/x/y/d.csv e/x/y/z/e.csv e/x/y/z/e.txt", ""},
		{"e/**/y/**/*.csv", "e/x/y/d.csv e/x/y/z/e.csv", ""},
		{"*/**/z/*", "e/x/y/z/e.csv e/x/y/z/e.txt", ""},
		{"e/[ab].csv*", "e/a.csv e/b.csv", "e/b.csv.crc"},
		{"e/.*.csv", "e/.hidden.csv", ""},
		{"e/_tm?.csv", "e/_tmp.csv", ""},
		{"e/_temporary/**/*.csv", "e/_temporary/0/f.csv", ""},
		{"e/*.crc", "e/b.csv.crc", "e/.b.csv.crc"},
		{"e/_SUCC*", "e/_SUCCESS", ""},
		{"e/nothing/**/*.csv", "", ""},
		{"e/**/nothing", "", ""},
	} {
		local, err := LocalFiles{}.Glob(t.Context(), filepath.Join(root, c.pattern))
		require.NoError(t, err, c.pattern)
		remote, err := NewS3Files(S3Config{}).Glob(t.Context(), "s3://"+bucket+"/"+c.pattern)
		require.NoError(t, err, c.pattern)
		for prefix, found := range map[string]Matches{root + "/": local, "s3://" + bucket + "/": remote} {
			for want, names := range map[string][]string{c.names + "n": found.Names, c.leftOut + "l": found.LeftOut} {
				got := slices.Clone(names)
				for i := range got {
					if at := strings.TrimPrefix(got[i], prefix); at != "" {
						got[i] = at
					}
				}
				require.Equal(t, want[:len(want)-1], strings.Join(got, " "), "%s below %s", c.pattern, prefix)
			}
		}
	}
	for _, pattern := range []string{"e/**.csv", "e/a**/b", "e/[", "e/**/["} {
		_, err := LocalFiles{}.Glob(t.Context(), filepath.Join(root, pattern))
		require.Error(t, err, pattern)
		_, err = NewS3Files(S3Config{}).Glob(t.Context(), "s3://"+bucket+"/"+pattern)
		require.Error(t, err, pattern)
	}
}

// TestPatternsFromTheWorkingDirectory tests relative patterns, including those with dots that do not
// mark hidden files.
func TestPatternsFromTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("a/b", 0o755))
	require.NoError(t, os.WriteFile("a/b/c.csv", nil, 0o644))
	require.NoError(t, os.Chdir("a"))
	for pattern, want := range map[string]string{
		"**/*.csv": "b/c.csv", "./*/*.csv": "b/c.csv", "./**": "b/c.csv", "../a/**/*.csv": "../a/b/c.csv",
		"../*/b/*": "../a/b/c.csv", "*/c.csv": "b/c.csv",
	} {
		found, err := LocalFiles{}.Glob(t.Context(), pattern)
		require.NoError(t, err)
		require.Equal(t, []string{want}, found.Names, pattern)
		require.Empty(t, found.LeftOut, pattern)
	}
}

// TestPatternsFollowLinksToFolders tests links to folders before, within and below "**", including
// circular links.
func TestPatternsFollowLinksToFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"exports/a.csv", "exports/x/b.csv", "store/day=1/c.csv", "store/day=1/d/e.csv"} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("1\n"), 0o644))
	}
	for link, target := range map[string]string{
		"latest": "exports", "exports/linked": "../store", "exports/x/absolute": filepath.Join(root, "store", "day=1"),
		// circles, one of them over two links
		"exports/x/self": ".", "exports/x/up": "..", "store/day=1/d/back": "../../../exports",
		"exports/file.csv": "a.csv", "exports/gone": "nowhere", "exports/round": "round",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(root, link)))
	}
	within := "a.csv file.csv linked/day=1/c.csv linked/day=1/d/e.csv x/absolute/c.csv x/absolute/d/e.csv x/b.csv"
	for pattern, want := range map[string]string{
		"exports/**/*.csv": within,
		"latest/**/*.csv":  within,
		"latest/**": "a.csv file.csv gone linked/day=1/c.csv linked/day=1/d/e.csv round x/absolute/c.csv " +
			"x/absolute/d/e.csv x/b.csv",
		"exports/*/*/*.csv": "linked/day=1/c.csv x/absolute/c.csv x/self/b.csv x/up/a.csv x/up/file.csv",
		"l*/**/d/*.csv":     "linked/day=1/d/e.csv x/absolute/d/e.csv",
		"gone/**/*.csv":     "", "exports/a.csv/**": "", "exports/gone/**": "",
	} {
		found, err := LocalFiles{}.Glob(t.Context(), filepath.Join(root, pattern))
		require.NoError(t, err, pattern)
		folder, _, _ := strings.Cut(strings.Replace(pattern, "l*", "latest", 1), "/")
		var names []string
		for _, name := range found.Names {
			names = append(names, strings.TrimPrefix(name, filepath.Join(root, folder)+"/"))
		}
		require.Equal(t, want, strings.Join(names, " "), pattern)
		require.Empty(t, found.LeftOut, pattern)
	}
	t.Run("a pattern ends with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := LocalFiles{}.Glob(ctx, filepath.Join(root, "exports/**/*.csv"))
		require.ErrorIs(t, err, context.Canceled)
	})
}

// TestURLWithTooFewSlashesIsNoFolder checks that s3:/bucket is rejected; it once published into a
// folder "s3:".
func TestURLWithTooFewSlashesIsNoFolder(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"s3:/x", "s3:/x/y", "s3:///x", "S3://x/y", "gs://x", "https:/x"} {
		_, err := Open(t.Context(), location, S3Config{})
		require.ErrorContains(t, err, "s3://bucket/prefix", location)
	}
	for _, name := range []string{"s3:/x/y.csv", "s3:/x/*.csv", "gs://x/*"} {
		_, err := LocalFiles{}.Glob(t.Context(), name)
		require.ErrorContains(t, err, "must be a path or s3://bucket/key", name)
	}
}
