package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/config"
	"capper/internal/testkit"
)

// recordedIn reads every file of a location on the disk, rolled or open: the records of each message. A
// rolled file must be whole.
func recordedIn(t *testing.T, place string) map[string]int {
	t.Helper()
	found := map[string]int{}
	err := filepath.WalkDir(place, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != audit.FileExtension {
			return err
		}
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		r, err := audit.NewReader(bytes.NewReader(file))
		for err == nil {
			var frame audit.Frame
			if frame, err = r.Next(); frame.Record != nil {
				found[frame.Record.Message.ID]++
				for _, g := range frame.Record.Groups {
					require.Contains(t, []audit.Outcome{audit.Allowed, audit.Denied}, g.Outcome)
				}
			}
		}
		if strings.Contains(path, audit.RecordsPrefix) {
			require.Equal(t, io.EOF, err, path)
			require.True(t, r.Ended(), path)
		}
		require.False(t, errors.As(err, new(*audit.DamageError)), "%s: %v", path, err)
		return nil
	})
	require.NoError(t, err)
	return found
}

// Each configuration that was in force lies in the audit before a record names it, and can be read.
func TestAReloadIsInTheAudit(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "audit")
	file := configure(t, "{default: {daily: 1}}")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	write(t, file, string(text)+"audit: {to: "+place+"}\n")
	p := serve(t, file)
	_, err = p.filter("before", 1, 2, 3)
	require.NoError(t, err)
	version := p.get("/v1/status")["config_version"]
	write(t, file, strings.Replace(string(text), "daily: 1}", "daily: 2}", 1)+"audit: {to: "+place+"}\n")
	testkit.Eventually(t, func() bool { return p.get("/v1/status")["config_version"] != version })
	_, err = p.filter("after", 1, 2, 3)
	require.NoError(t, err)
	require.Equal(t, "ok", p.get("/v1/status")["audit"].(map[string]any)["state"])
	p.signal(syscall.SIGTERM)
	require.Equal(t, map[string]int{"before": 1, "after": 1}, recordedIn(t, place))
	policies, err := filepath.Glob(filepath.Join(place, "policies", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, policies, 2)
	most := map[int]bool{}
	for _, name := range policies {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		yaml, err := audit.OpenPolicy(raw)
		require.NoError(t, err)
		policy, err := config.ParsePolicy(yaml)
		require.NoError(t, err)
		require.Equal(t, filepath.Base(name), policy.Version+".yaml")
		most[policy.Default[0].Max] = true
	}
	require.Equal(t, map[int]bool{1: true, 2: true}, most)
}
