package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const everyPath = `server:
  tls: {cert_file: tls/cert.pem, key_file: /abs/key.pem}
segments: {source: ../published, cache_dir: cache}
store:
  kind: redis
  embedded: {path: log.db, create: false}
  redis:
    addrs: [127.0.0.1:7000]
    password_file: secret
    tls: {enabled: true, ca_file: ca.pem, cert_file: c.pem, key_file: k.pem}
limits: {default: {daily: 1}}
`

// TestRelativePathsBeginAtTheFilesDirectory checks that a relative path has the same meaning in every working
// directory.
func TestRelativePathsBeginAtTheFilesDirectory(t *testing.T) {
	t.Parallel()
	c, err := Parse("/etc/capper/capper.yaml", []byte(everyPath))
	require.NoError(t, err)
	require.Equal(t, TLS{"/etc/capper/tls/cert.pem", "/abs/key.pem"}, c.Server.TLS)
	require.Equal(t, "/etc/published", c.Segments.Source)
	require.Equal(t, "/etc/capper/cache", c.Segments.Refresher.CacheDir)
	require.Equal(t, "/etc/capper/log.db", c.Store.Embedded.Path)
	require.True(t, c.Store.Embedded.MustExist)
	require.Equal(t, "/etc/capper/secret", c.Store.Redis.PasswordFile)
	require.Equal(t, "/etc/capper/ca.pem", c.Store.Redis.TLS.CAFile)
	require.Equal(t, "/etc/capper/c.pem", c.Store.Redis.TLS.CertFile)
	require.Equal(t, "/etc/capper/k.pem", c.Store.Redis.TLS.KeyFile)

	c, err = Parse("/etc/capper/capper.yaml", []byte("segments: {source: s3://b/p}\nlimits: {default: {daily: 1}}\n"))
	require.NoError(t, err)
	require.Equal(t, "s3://b/p", c.Segments.Source)
	require.Equal(t, "/etc/capper/var/cache", c.Segments.Refresher.CacheDir, "defaults as well")
	require.Equal(t, "/etc/capper/var/log.db", c.Store.Embedded.Path)
}

// TestPathsOfEarlierVersions checks that files which an earlier version created below the working directory are not
// silently replaced by an empty directory.
func TestPathsOfEarlierVersions(t *testing.T) {
	work := t.TempDir()
	t.Chdir(work)
	etc := t.TempDir()
	file := filepath.Join(etc, "capper.yaml")
	text := "segments: {source: segments}\nlimits: {default: {daily: 1}}\n"
	parse := func() error {
		_, err := Parse(file, []byte(text))
		return err
	}
	require.NoError(t, parse())
	write := func(dir, name string) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	write(work, "segments/current.json")
	write(work, "var/cache/0123456789abcdef/generation")
	write(work, "var/log.db/CURRENT")
	err := parse()
	for _, part := range []string{"segments.source: means " + etc + "/segments,", "move " + work + "/segments,",
		"store.embedded.path: means " + etc + "/var/log.db,", "move " + work + "/var/log.db,", "capper.yaml:1:20"} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "cache_dir", "the service does without it")

	require.NoError(t, os.MkdirAll(filepath.Join(etc, "var/log.db"), 0o755)) // empty is nothing
	require.ErrorContains(t, parse(), "store.embedded.path: means ")
	write(etc, "segments/current.json")
	write(etc, "var/log.db/CURRENT")
	c, err := Parse(file, []byte(text))
	require.NoError(t, err)
	require.Len(t, c.Warnings, 1)
	require.Contains(t, c.Warnings[0], "segments.cache_dir: is "+etc+"/var/cache")
}
