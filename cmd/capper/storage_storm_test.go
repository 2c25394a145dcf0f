//go:build storms

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A service that is killed while it writes a backup leaves no file, and one whose end is missing or
// different neither.
func TestBackupThatIsCutOff(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}\n")
	p := serve(t, file)
	_, err := p.filter("before", 1, 2)
	require.NoError(t, err)
	whole := filepath.Join(t.TempDir(), "whole.tar")
	capperOutput(t, 0, "backup", "--url", p.url, "--to", whole)
	archive, err := os.ReadFile(whole)
	require.NoError(t, err)
	for name, answer := range map[string]http.HandlerFunc{
		"killed": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(archive[:len(archive)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive[:len(archive)-1]) },
		"changed": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(bytes.Replace(archive, []byte("capper embedded store"), []byte("capper embedded stare"), 1))
		},
	} {
		fake := httptest.NewServer(answer)
		dir := t.TempDir()
		out := capperOutput(t, 1, "backup", "--url", fake.URL, "--to", filepath.Join(dir, "b.tar"))
		require.True(t, strings.Contains(out, "damaged or incomplete") || strings.Contains(out, "receive the backup"),
			"%s: %s", name, out)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left, name)
		fake.Close()
	}
	damaged := filepath.Join(t.TempDir(), "damaged.tar")
	require.NoError(t, os.WriteFile(damaged, archive[:len(archive)-512], 0o600))
	require.Contains(t, capperOutput(t, 3, "restore", damaged), "damaged or incomplete")
	require.NoError(t, os.WriteFile(damaged, ofLaterVersion(archive), 0o600))
	require.Contains(
		t,
		capperOutput(t, 3, "restore", damaged),
		"version 9 is too new for this program, which reads versions up to 2",
	)
}

// ofLaterVersion is the archive as a later version of capper might have written it, whole.
func ofLaterVersion(archive []byte) []byte {
	later := bytes.Replace(archive, []byte(`"version": 1`), []byte(`"version": 9`), 1)
	end := len(later) - 4*512 // the header of the sum, its block, two that are empty
	copy(later[end+512:], fmt.Sprintf("%x", sha256.Sum256(later[:end])))
	return later
}

// slowReader takes little of an answer that nobody reads.
var slowReader = http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network,
	addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil {
		err = conn.(*net.TCPConn).SetReadBuffer(1 << 16)
	}
	return conn, err
}}}

// A service that is killed while somebody reads its backup, and a reader that is killed, leave no file that
// passes for whole; the next start removes the copy, and the store is what it was.
func TestBackupOfKilled(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}\n")
	p := serve(t, file)
	_, err := p.filter("before", 1, 2)
	require.NoError(t, err)
	users := make([]uint32, 90_000)
	for i := range 4 { // eight megabytes: twice what a service's end of a connection holds
		for k := range users {
			users[k] = uint32(10_000 + i*len(users) + k)
		}
		_, err = p.filter(fmt.Sprint("many-", i), users...)
		require.NoError(t, err)
	}
	held, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response, err := slowReader.Post(p.url+r.URL.Path, "", nil)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer response.Body.Close()
		_, _ = io.CopyN(w, response.Body, 1<<16)
		close(held)
		<-release
		_, _ = io.Copy(w, response.Body)
		panic(http.ErrAbortHandler)
	}))
	defer slow.Close()
	free := sync.OnceFunc(func() { close(release) })
	defer free() // in a failure too: who waits for it would hold up the end
	dir := t.TempDir()
	target := filepath.Join(dir, "b.tar")
	command := exec.Command("capper", "backup", "--url", slow.URL, "--to", target)
	require.NoError(t, command.Start())
	<-held
	copied := filepath.Join(filepath.Dir(file), "log.db", "BACKUP")
	require.DirExists(t, copied)
	p.signal(syscall.SIGKILL)
	require.NoError(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	free()
	require.NoFileExists(t, target)

	p = serve(t, file)
	require.NoDirExists(t, copied)
	got, err := p.filter("next", 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, []uint32{3}, got.Allowed)
}
