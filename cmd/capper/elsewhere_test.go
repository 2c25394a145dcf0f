package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// relative is a configuration of relative paths and defaults, with more of the
// store's section.
func relative(t *testing.T, store string) (file string) {
	t.Helper()
	file = configure(t, "{}")
	write(t, file, `server: {listen: "127.0.0.1:0", stop_delay: 0s}
segments: {source: segments}
channels: {push: 1}
store: `+store+`
limits: {default: {daily: 1}}
`)
	return file
}

// serveFrom starts the service in a working directory.
func serveFrom(t *testing.T, dir, file string) *process {
	t.Helper()
	t.Chdir(dir)
	return serve(t, file)
}

// A second start from elsewhere finds the store of the first.
func TestStartFromElsewhere(t *testing.T) {
	file := relative(t, "{embedded: {}}")
	path := filepath.Join(filepath.Dir(file), "var", "log.db")
	for i, allowed := range []int{1, 0} {
		p := serveFrom(t, t.TempDir(), file)
		got, err := p.filter(fmt.Sprint("message-", i), 7)
		require.NoError(t, err)
		require.Len(t, got.Allowed, allowed)
		store := fmt.Sprint(p.get("/v1/status")["store"])
		require.Contains(t, store, path)
		require.Equal(t, i == 0, strings.Contains(store, "created empty"))
		require.Contains(t, p.log.String(), path)
		require.Equal(t, i == 0, strings.Contains(p.log.String(), "an empty embedded store was created"))
		p.signal(syscall.SIGTERM)
	}
	require.NoDirExists(t, "var")
}

// What earlier versions left below the working directory is not replaced by an
// empty store.
func TestStoreOfAnEarlierVersionBelowTheWorkingDirectory(t *testing.T) {
	file := relative(t, "{embedded: {}}")
	work := t.TempDir()
	p := serveFrom(t, work, file)
	p.signal(syscall.SIGTERM)
	require.NoError(t, os.Rename(filepath.Join(filepath.Dir(file), "var"), filepath.Join(work, "var")))
	requireStartRefused(t, file, filepath.Join(work, "var", "log.db"), filepath.Join(filepath.Dir(file), "var",
		"log.db"))
}

// A service that must find a store does not begin without one.
func TestStoreIsNotCreatedWhereItMustExist(t *testing.T) {
	t.Parallel()
	file := relative(t, "{embedded: {create: false}}")
	path := filepath.Join(filepath.Dir(file), "var", "log.db")
	requireStartRefused(t, file, path, "the store does not exist, and the setting 'create' is false")
	require.NoDirExists(t, path)
}

// A volume that is not mounted leaves an empty directory.
func TestEmptiedStoreIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	path := filepath.Join(filepath.Dir(file), "log.db")
	p := serve(t, file)
	p.signal(syscall.SIGTERM)
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Mkdir(path, 0o755))
	requireStartRefused(t, file, path, "mount its volume")
}

func requireStartRefused(t *testing.T, file string, why ...string) {
	t.Helper()
	output, err := exec.Command("capper", "serve", "--config", file).CombinedOutput()
	require.Error(t, err)
	for _, part := range append(why, "capper: error: ") {
		require.Contains(t, string(output), part)
	}
}
