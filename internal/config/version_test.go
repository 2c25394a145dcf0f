package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const fleetFile = `# instance one
server:
  listen: 127.0.0.1:8081
  admin_listen: 127.0.0.1:9081
  host_names: [one.example.com]
  tls: {cert_file: one.crt, key_file: one.key}
  call_timeout: 5s
  api_keys: [{client: engine, id: a, sha256: abababababababababababababababababababababababababababababababab,
      scopes: [filter]}]
segments: {source: segments, cache_dir: cache-one, refresh: 30s}
store:
  kind: redis
  redis: {addrs: ["a:6379", "b:6379"], password_file: one.pass, clock_skew: 250ms, create: true,
      tls: {enabled: true, ca_file: one.ca, cert_file: one.crt, key_file: one.key}}
audit: {to: audit-one, roll: 10m}
log: {level: info, format: text}
tracing: {endpoint: "http://127.0.0.1:4318", service_name: one}
channels: {push: 1, sms: 2}
suppress: {opted-out: all}
limits:
  default: [{name: daily, max: 1, window: 24h}]
  segments: {vip: {daily: 2}}
`

func version(t *testing.T, text string) string {
	t.Helper()
	c, err := Parse("capper.yaml", []byte(text))
	require.NoError(t, err, text)
	require.Len(t, c.Version, 12)
	require.Equal(t, c.Version, c.Policy.Version)
	require.Equal(t, c.Version, c.Pacers.Version)
	return c.Version
}

// TestVersionsAreOfWhatAFleetAgreesOn checks that two instances with different addresses and paths have the same
// version, and that every key which affects decisions changes the version.
func TestVersionsAreOfWhatAFleetAgreesOn(t *testing.T) {
	t.Parallel()
	first := version(t, fleetFile)
	for was, is := range map[string]string{
		"# instance one":                                 "# another comment",
		"127.0.0.1:8081":                                 "127.0.0.1:8082",
		"  admin_listen: 127.0.0.1:9081\n":               "",
		"[one.example.com]":                              "[two.example.com, one.example.com]",
		"tls: {cert_file: one.crt, key_file: one.key}\n": "tls: {cert_file: /two.crt, key_file: /two.key}\n",
		"cache-one":                                      "/var/cache/two",
		`["a:6379", "b:6379"]`:                           `["b:6379"]`,
		"one.pass":                                       "two.pass",
		"create: true":                                   "create: false",
		" create: true,":                                 "",
		"ca_file: one.ca":                                "ca_file: two.ca",
		"audit-one":                                      "/srv/audit-two",
		"level: info":                                    "level: debug",
		"log: {level: info, format: text}\n":             "",
		"service_name: one":                              "service_name: two",
		"segments: {vip: {daily: 2}}":                    "segments:\n    vip:\n      \"daily\": 2 # as before",
	} {
		require.Contains(t, fleetFile, was)
		require.Equal(t, first, version(t, strings.Replace(fleetFile, was, is, 1)), "%s is %s", was, is)
	}
	seen := map[string]string{first: ""}
	for was, is := range map[string]string{
		"vip: {daily: 2}":                     "vip: {daily: 3}",
		"max: 1":                              "max: 2",
		"window: 24h":                         "window: 25h",
		"name: daily":                         "name: once",
		"opted-out: all":                      "opted-out: [push]",
		"suppress: {opted":                    "suppress: {complained: all, opted",
		"sms: 2":                              "sms: 3",
		"clock_skew: 250ms":                   "clock_skew: 300ms",
		"refresh: 30s":                        "refresh: 31s",
		"source: segments":                    "source: s3://bucket/prod",
		"call_timeout: 5s":                    "call_timeout: 6s",
		"scopes: [filter]":                    "scopes: [filter, read]",
		"id: a":                               "id: b",
		"to: audit-one":                       "to: s3://bucket/audit",
		"audit: {to: audit-one, roll: 10m}\n": "",
		"roll: 10m":                           "roll: 11m",
		"limits:\n":                           "holdout: {percent: 5, salt: a}\nlimits:\n",
		"channels:":                           "console: false\nchannels:",
	} {
		require.Contains(t, fleetFile, was)
		changed := version(t, strings.Replace(fleetFile, was, is, 1))
		require.NotContains(t, seen, changed, "%s is %s", was, is)
		seen[changed] = is
	}
}

// TestVersionsOfTextsInBlocks checks that the version covers every line of a multi-line text.
func TestVersionsOfTextsInBlocks(t *testing.T) {
	t.Parallel()
	with := func(expression string) string {
		return version(t, fleetFile+"audiences:\n  "+expression+"\n")
	}
	require.Equal(t, with("loyal: vip - opted-out"), with("loyal: \"vip - opted-out\""))
	require.NotEqual(t, with("loyal: |-\n    vip - opted-out"), with("loyal: |-\n    vip"))
}

// TestAPolicyHasTheVersionOfItsFile checks that a configuration's policy has the version of the file.
func TestAPolicyHasTheVersionOfItsFile(t *testing.T) {
	t.Parallel()
	p, err := ParsePolicy([]byte(fleetFile))
	require.NoError(t, err)
	require.Equal(t, version(t, fleetFile), p.Version)
}

// TestAChangeOutsideTheVersionIsReloaded checks that a reload changes the log level, which is no part of the version.
func TestAChangeOutsideTheVersionIsReloaded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "capper.yaml")
	require.NoError(t, os.WriteFile(file, []byte(minimal+"log: {level: info}\n"), 0o600))
	w, err := NewWatcher(file, time.Now)
	require.NoError(t, err)
	before := w.Status().Version
	require.NoError(t, os.WriteFile(file, []byte(minimal+"log: {level: debug}\n"), 0o600))
	level := ""
	changed, err := w.poll(func(c *Config) error { level = c.Log.Level; return nil })
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, "debug", level)
	require.Equal(t, before, w.Status().Version)
}
