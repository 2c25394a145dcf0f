package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// capperOutput runs the program and demands its status.
func capperOutput(t *testing.T, status int, args ...string) string {
	t.Helper()
	command := exec.Command("capper", args...)
	out, _ := command.CombinedOutput()
	require.Equal(t, status, command.ProcessState.ExitCode(), "%v: %s", args, out)
	return string(out)
}

// A backup of a running service, which is killed afterwards and loses its directory, is put back: who was sent
// to before it is denied, who was sent to after it may be sent to again, and the service says so.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}\n")
	dir := filepath.Dir(file)
	archive, store := filepath.Join(dir, "capper.tar"), filepath.Join(dir, "log.db")
	p := serve(t, file)
	got, err := p.filter("before", 1, 2)
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 2}, got.Allowed)
	require.Contains(t, capperOutput(t, 0, "backup", "--url", p.url, "--to", archive), "capper restore puts it back")
	info, err := os.Stat(archive)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "it says who was sent what")
	_, err = p.filter("after", 3)
	require.NoError(t, err)
	require.Contains(t, capperOutput(t, 1, "restore", archive, "--to", store, "--accept-lost-sends"),
		"open: stop the service first")
	p.signal(syscall.SIGTERM)

	out := capperOutput(t, 0, "restore", archive)
	require.Contains(t, out, "is whole")
	require.NotContains(t, out, "capper set replay")
	out = capperOutput(t, 1, "restore", archive, "--to", store)
	require.Contains(t, out, "sends and changes of sets in between would be lost")
	require.Contains(t, out, "hint: restore the newest copy of the store if there is one; to continue without those "+
		"sends and changes of sets, add --accept-lost-sends")
	require.Contains(t, capperOutput(t, 1, "restore", archive, "--to", store, "--accept-lost-sends"), "must be empty")
	require.NoError(t, os.RemoveAll(store))
	out = capperOutput(t, 0, "restore", archive, "--to", store, "--accept-lost-sends")
	require.Regexp(t, `sends and changes of sets by calls after [^ ]+Z are not in it`, out)
	require.Contains(t, out, "run capper set replay --config FILE --since 20")

	p = serve(t, file)
	require.Contains(t, p.log.String(), "restored from a backup")
	got, err = p.filter("next", 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, []uint32{3}, got.Allowed)
}
