package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListeners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"by default":       {"limits: {}\n", []string{"http://127.0.0.1:8080"}},
		"of all addresses": {"server: {listen: '0.0.0.0:80'}\n", []string{"http://127.0.0.1:80"}},
		"of all, IPv6":     {"server: {listen: '[::]:80'}\n", []string{"http://127.0.0.1:80"}},
		"without a host":   {"server: {listen: ':80'}\n", []string{"http://127.0.0.1:80"}},
		"of one address":   {"server: {listen: '[::1]:80'}\n", []string{"http://[::1]:80"}},
		"two, TLS": {"server:\n  listen: 10.0.0.1:1\n  admin_listen: 127.0.0.1:2\n  tls: {cert_file: a, " +
			"key_file: b}\n", []string{"https://10.0.0.1:1", "https://127.0.0.1:2"}},
		"of a faulty file": {"server: {listen: '0.0.0.0:80', liste: 3}\nlimits: 7\n",
			[]string{"http://127.0.0.1:80"}},
		"of no YAML": {"server:\n  # listen: 1.1.1.1:1\n  listen: \"0.0.0.0:81\" # all\n  admin_listen: " +
			"127.0.0.1:2\nstore: {redis: {tls: {cert_file: a}}}\nlimits: {default: [\n", []string{"http://127.0.0.1:81",
			"http://127.0.0.1:2"}},
		"of no YAML, TLS": {"limits: [\nserver: {tls: {cert_file: a, key_file: b}, listen: '127.0.0.1:81'}\n",
			[]string{"https://127.0.0.1:81"}},
		"of no YAML at all":  {"limits: [\n", []string{"http://127.0.0.1:8080"}},
		"of an empty file":   {"", []string{"http://127.0.0.1:8080"}},
		"a port of each run": {"server: {listen: '127.0.0.1:0'}\n", nil},
		"no address":         {"server: [\n listen: nonsense\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "capper.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			got, err := Listeners(file)
			require.Equal(t, c.want, got)
			require.Equal(t, c.want == nil, err != nil, "%v", err)
		})
	}
	_, err := Listeners(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorContains(t, err, "read configuration")
}
