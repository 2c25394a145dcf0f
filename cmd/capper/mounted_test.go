package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// A service whose configuration is a mounted Secret takes what the kubelet swaps in: a key comes,
// a fault is refused and told, a key goes. Nothing restarts.
func TestAMountedConfigurationIsReloaded(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(configure(t, "{default: {daily: 1}}"))
	require.NoError(t, err)
	secret := func(keys ...string) map[string]string {
		var list []string
		for _, key := range keys {
			list = append(list, fmt.Sprintf("{client: crm, id: %s, sha256: %x, scopes: [filter, read]}",
				strings.Split(key, ".")[0], sha256.Sum256([]byte(key))))
		}
		server := `server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s, api_keys: [` +
			strings.Join(list, ", ") + "]}"
		return map[string]string{"capper.yaml": strings.Replace(string(text),
			`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}`, server, 1)}
	}
	mount := testkit.NewMount(t, secret("crm-1.old"))
	p := serve(t, mount.Path("capper.yaml"))
	asked := func(key string) (status int) {
		request, err := http.NewRequest(http.MethodGet, p.url+"/v1/limits", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, asked("crm-1.old"))
	require.Equal(t, http.StatusUnauthorized, asked("crm-2.new"))

	mount.Swap(secret("crm-1.old", "crm-2.new"))
	testkit.Eventually(t, func() bool { return asked("crm-2.new") == http.StatusOK })
	require.Equal(t, http.StatusOK, asked("crm-1.old"))

	mount.Swap(map[string]string{"capper.yaml": "limits: {default: {daily: many}}\n"})
	testkit.Eventually(t, func() bool {
		return strings.Contains(p.log.String(), "configuration rejected, the previous one stays in force")
	})
	require.Equal(t, http.StatusOK, asked("crm-1.old"))

	mount.Swap(secret("crm-2.new"))
	testkit.Eventually(t, func() bool { return asked("crm-1.old") == http.StatusUnauthorized })
	require.Equal(t, http.StatusOK, asked("crm-2.new"))
	testkit.Eventually(t, func() bool { return strings.Count(p.log.String(), `msg="configuration in force"`) == 2 },
		"%s", p.log)
	require.Equal(t, 1, strings.Count(p.log.String(), "configuration rejected"), "%s", p.log)
}
