package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/cli"
	"capper/internal/terminal"
)

// What the configuration says of callers is in force: keys with scopes, rates,
// a listener of their own for operators. Secrets are in no log.
func TestKeysRatesAndAdminListener(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	config, err := os.ReadFile(file)
	require.NoError(t, err)
	const key, ops = "crm-1.a-secret", "ops-1.a-secret"
	write(t, file, strings.Replace(string(config), `server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}`, fmt.Sprintf(`server:
  listen: 127.0.0.1:0
  admin_listen: 127.0.0.1:0
  api_keys: [{client: crm, id: crm-1, sha256: %x, scopes: [filter]}, {client: ops, id: ops-1, sha256: %x,
      scopes: [read, admin]}]
  rate_limits: {clients: {crm: {users_per_second: 1, burst: 2}}}`, sha256.Sum256([]byte(key)), sha256.Sum256([]byte(ops))), 1))
	p := serve(t, file)
	call := func(base, method, path, key, body string) *http.Response {
		request, err := http.NewRequest(method, base+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		if key != "" {
			request.Header.Set("Authorization", "Bearer "+key)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response
	}
	filter := `{"message_id": "m", "user_ids": [1, 2]}`
	require.Equal(t, 401, call(p.url, "POST", "/v1/filter", "", filter).StatusCode)
	require.Equal(t, 401, call(p.url, "POST", "/v1/filter", key+"x", filter).StatusCode)
	require.Equal(t, 200, call(p.url, "POST", "/v1/filter", key, filter).StatusCode)
	limited := call(p.url, "POST", "/v1/filter", key, filter)
	require.Equal(t, 429, limited.StatusCode)
	require.NotEmpty(t, limited.Header.Get("Retry-After"))
	require.Equal(t, 403, call(p.url, "GET", "/v1/users/1", key, "").StatusCode)
	require.Equal(t, 404, call(p.url, "GET", "/metrics", key, "").StatusCode, "metrics are on the admin listener")
	require.Equal(t, 200, call(p.url, "GET", "/readyz", "", "").StatusCode)

	p.logs(`what=admin address=\S+`)
	admin := regexp.MustCompile(`what=admin address=(\S+)`).FindStringSubmatch(p.log.String())
	require.Equal(t, 200, call("http://"+admin[1], "GET", "/metrics", "", "").StatusCode)
	require.Equal(t, 200, call("http://"+admin[1], "GET", "/debug/pprof/cmdline", "", "").StatusCode)
	require.Equal(t, 401, call("http://"+admin[1], "DELETE", "/v1/users/1", "", "").StatusCode)
	erase := func(url string) string {
		cmd := exec.Command("capper", "erase", "1", "--yes", "--url", url)
		cmd.Env = append(os.Environ(), cli.KeyVariable+"="+key)
		out, err := cmd.CombinedOutput()
		require.EqualError(t, err, "exit status 1", "%s", out)
		return string(out)
	}
	require.Contains(t, erase(p.url), "capper: hint: --url must name the admin listener (server.admin_listen) if "+
		"there is one")
	require.Contains(t, erase("http://"+admin[1]), "capper: hint: the key in CAPPER_API_KEY needs the scope admin")
	sends := filepath.Join(t.TempDir(), "sends.csv")
	write(t, sends, "user_id,at\n1,"+time.Now().UTC().Format(time.RFC3339)+"\n")
	imported := func(url string) string {
		cmd := exec.Command("capper", "import", sends, "--url", url)
		cmd.Env = append(os.Environ(), cli.KeyVariable+"="+ops)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	require.Contains(t, imported(p.url), "capper: hint: --url must name the admin listener (server.admin_listen) if "+
		"there is one")
	require.Regexp(t, `(?m)^added +1$`, imported("http://"+admin[1]))
	require.NotContains(t, p.log.String(), "a-secret")

	file2 := filepath.Join(t.TempDir(), "open.yaml")
	write(t, file2, strings.Replace(string(config), "127.0.0.1:0", "0.0.0.0:0", 1))
	open := launch(t, file2)
	<-open.exited
	require.Equal(t, int(terminal.BadInput), open.cmd.ProcessState.ExitCode())
	require.Contains(t, open.log.String(), "api_keys: is required if listen is not a loopback address")
}
