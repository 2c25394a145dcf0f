package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

func TestWatcher(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "capper.yaml")
	write := func(content string) { require.NoError(t, os.WriteFile(file, []byte(content), 0o600)) }
	write(minimal + "channels: {push: 1}\n")
	w, err := NewWatcher(file, time.Now)
	require.NoError(t, err)
	first := w.Current()

	applied, reloads := make(chan *Config, 10), make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, time.Millisecond, func(c *Config) error { applied <- c; return nil },
			func(err error) { reloads <- err }, nil, nil)
	}()

	write(strings.Replace(minimal, "daily: 1", "daily: 2", 1) + "channels: {push: 1}\n")
	// A poll may see an incomplete file, so only the accepted one counts.
	require.Equal(t, 2, (<-applied).Policy.Default[0].Max)
	require.Eventually(t, func() bool { return w.Status().Version != first.Version && w.Status().Error == "" },
		testkit.Patience, time.Millisecond)

	for bad, why := range map[string]string{
		minimal + "channels: {push: 2}\n": "must stay 1, got 2",
		minimal + "store: {kind: embedded, embedded: {path: " +
			"other}}\n": "store.embedded.path: requires a restart; the configuration in force stays (not given, now " +
			"other)",
		minimal + "limits: {}\n": "is given twice",
	} {
		write(bad)
		require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, why) }, 2*time.Minute,
			time.Millisecond, why)
		require.Equal(t, 2, w.Current().Policy.Default[0].Max)
	}
	require.Empty(t, applied)

	require.NoError(t, os.Remove(file))
	require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, "read configuration") },
		testkit.Patience, time.Millisecond)
	write(minimal + "channels: {push: 1, sms: 2}\n")
	require.Contains(t, (<-applied).Policy.Channels, "sms")
	require.Eventually(t, func() bool { return w.Status().Error == "" }, 2*time.Minute, time.Millisecond)

	require.NoError(t, syscall.Mkfifo(file+".pipe", 0o600))
	require.NoError(t, os.Rename(file+".pipe", file)) // nobody writes to it
	require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, "must be a regular file") },
		testkit.Patience, time.Millisecond)
	require.NoError(t, os.Remove(file))
	write(minimal + "channels: {push: 1, sms: 3}\n")
	require.Eventually(t, func() bool { return strings.Contains(w.Status().Error, "must stay 2, got 3") },
		testkit.Patience, time.Millisecond)
	cancel()
	<-done
}

// TestARefusedReloadNamesTheKeys checks that a refused reload names the changed keys instead of their section.
func TestARefusedReloadNamesTheKeys(t *testing.T) {
	t.Parallel()
	type file struct {
		*Config
		given map[string]string
	}
	parsed := func(text string) file {
		c, given, err := parse("f", []byte(text))
		require.NoError(t, err)
		return file{c, given}
	}
	reload := func(from, to file) error { return from.reloadable("f", to.Config, from.given, to.given) }
	const key = "{client: crm, id: crm-%s, sha256: " +
		"%s86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [read]}"
	first, second := fmt.Sprintf(key, "1", "9f"), fmt.Sprintf(key, "2", "af")
	was := parsed("server: {listen: '127.0.0.1:80', max_body: 16MiB, bounds: {connections: 9}, api_keys: [" + first +
		"]}\n" + minimal)
	for name, c := range map[string]struct {
		server string
		want   []string
	}{
		"address": {"{listen: '127.0.0.1:81', bounds: {connections: 9}, api_keys: [" + first + "]}",
			[]string{"server.listen: requires a restart; the configuration in force stays (127.0.0.1:80, now " +
				"127.0.0.1:81)"}},
		"bound": {"{listen: '127.0.0.1:80', bounds: {connections: 8}, api_keys: [" + first + "]}",
			[]string{"server.bounds.connections: requires a restart"}},
		"two": {"{listen: '127.0.0.1:80', call_timeout: 1s, api_keys: [" + first + "]}",
			[]string{"server.bounds.connections: requires a restart", "server.call_timeout: requires a restart"}},
		"no keys": {"{listen: '127.0.0.1:80', bounds: {connections: 9}}",
			[]string{"server.api_keys: must keep at least one key", "server.without_keys: true"}},
		"empty list": {"{listen: '127.0.0.1:80', bounds: {connections: 9}, api_keys: []}",
			[]string{"server.api_keys: must keep at least one key"}},
		"no keys, said": {"{listen: '127.0.0.1:80', bounds: {connections: 9}, without_keys: true}", nil},
		"other keys":    {"{listen: '127.0.0.1:80', bounds: {connections: 9}, api_keys: [" + second + "]}", nil},
		"same, spelt": {"{listen: '127.0.0.1:80', max_body: 16777216B, bounds: {connections: 9}, api_keys: [" +
			first + "]}", nil},
	} {
		err := reload(was, parsed("server: "+c.server+"\n"+minimal))
		if c.want == nil {
			require.NoError(t, err, name)
			continue
		}
		for _, want := range c.want {
			require.ErrorContains(t, err, want, name)
		}
		require.NotContains(t, err.Error(), "server.api_keys[", name)
	}
	open := parsed("server: {without_keys: true}\n" + minimal)
	require.NoError(t, reload(open, parsed("server: {api_keys: ["+first+"]}\n"+minimal)), "keys may come")
}

// TestStatusDoesNotWaitForAReload checks that a slow reload does not delay the status.
func TestStatusDoesNotWaitForAReload(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "capper.yaml")
	require.NoError(t, os.WriteFile(name, []byte(minimal), 0o600))
	w, err := NewWatcher(name, time.Now)
	require.NoError(t, err)
	first := w.Current()
	parsing, applying, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.parse = func(file string, data []byte) (*Config, map[string]string, error) {
		parsing <- struct{}{}
		<-release
		return parse(file, data)
	}
	require.NoError(t, os.WriteFile(name, []byte(minimal+"channels: {push: 1}\n"), 0o600))
	polled := make(chan error, 1)
	go func() {
		_, err := w.poll(func(*Config) error { applying <- struct{}{}; <-release; return nil })
		polled <- err
	}()
	for _, slow := range []chan struct{}{parsing, applying} {
		<-slow
		require.Equal(t, first.Version, w.Status().Version)
		require.Same(t, first, w.Current())
		release <- struct{}{}
	}
	require.NoError(t, <-polled)
	require.NotEqual(t, first.Version, w.Status().Version)
}

// TestCreateIsTakenForTheNextStart checks that a changed create setting, which applies at the next start, does not
// block other changes.
func TestCreateIsTakenForTheNextStart(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		"embedded": "store: {kind: embedded, embedded: {path: log.db, create: true}}\n",
		"redis":    "store: {kind: redis, redis: {addrs: [\"a:1\"], create: true}}\n",
	} {
		name := filepath.Join(t.TempDir(), "capper.yaml")
		require.NoError(t, os.WriteFile(name, []byte(minimal+store), 0o600))
		w, err := NewWatcher(name, time.Now)
		require.NoError(t, err)
		change := func(text string) error {
			require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			_, err := w.poll(func(*Config) error { return nil })
			return err
		}
		once := strings.Replace(minimal+store, "create: true", "create: false", 1)
		require.NoError(t, change(once), kind)
		require.NoError(t, change(strings.Replace(once, "daily: 1", "daily: 2", 1)), kind)
		require.Equal(t, 2, w.Current().Policy.Default[0].Max)
		other := strings.NewReplacer("log.db", "other.db", "a:1", "b:1").Replace(once)
		err = change(other)
		require.ErrorContains(t, err, "requires a restart", kind)
		require.NotContains(t, err.Error(), "create")
	}
}
