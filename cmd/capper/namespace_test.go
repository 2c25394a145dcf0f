package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"capper/internal/cli"
	"github.com/stretchr/testify/require"
)

// Two teams use one message id. Neither sees, replays or gives back what the
// other has sent, and explain tells whose each send was.
func TestTeamsShareAMessageID(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {weekly: 9}}")
	config, err := os.ReadFile(file)
	require.NoError(t, err)
	keys := ""
	for _, key := range []string{"growth", "crm", "old"} {
		namespace := ""
		if key != "old" {
			namespace = "namespace: " + key + ", "
		}
		keys += fmt.Sprintf("    - {client: %s, %sid: %[1]s, sha256: %[3]x, scopes: [filter, read]}\n", key, namespace,
			sha256.Sum256([]byte(key+".secret")))
	}
	listen := `server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}`
	require.Contains(t, string(config), listen)
	write(t, file, strings.Replace(string(config), listen, "server:\n  listen: 127.0.0.1:0\n  stop_delay: 0s\n  "+
		"api_keys:\n"+keys, 1))
	p := serve(t, file)
	audience, ids := filepath.Join(t.TempDir(), "audience.txt"), new(bytes.Buffer)
	for id := range 2_000 {
		fmt.Fprintln(ids, id)
	}
	write(t, audience, ids.String())
	as := func(key string, args ...string) string {
		t.Helper()
		cmd := exec.Command("capper", append(args, "--url", p.url)...)
		cmd.Env = append(os.Environ(), cli.KeyVariable+"="+key+".secret")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	for _, key := range []string{"growth", "crm", "old"} {
		out := as(key, "filter", audience, "--message-id", "newsletter", "--channel", "push", "--allowed",
			filepath.Join(t.TempDir(), key+".txt"))
		require.Regexp(t, `(?m)^allowed +2000$`, out, "%s replays nobody's", key)
	}
	require.Regexp(t, `(?m)^absent +2000 `, as("growth", "release", audience, "--message-id", "newsletter2"))
	require.Regexp(t, `(?m)^released +2000$`, as("growth", "release", audience, "--message-id", "newsletter",
		"--channel", "push"))
	require.Regexp(t, `(?m)^released +0$`, as("growth", "release", audience, "--message-id", "newsletter"))
	explained := as("old", "explain", "1999")
	require.NotContains(t, explained, "growth")
	require.Regexp(t, `(?m)^\S+Z +push +crm +newsletter$`, explained)
	require.Regexp(t, `(?m)^\S+Z +push +- +newsletter$`, explained)
}
