package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/yamltree"
)

func TestParseReadsWhereDecisionsAreRecorded(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	require.NoError(t, err)
	c, err := Parse("capper.yaml", []byte(minimal))
	require.NoError(t, err)
	require.Empty(t, c.Audit.To, "nothing is recorded")
	for text, want := range map[string]Audit{
		"{to: audit}": {To: filepath.Join(here, "audit"), Roll: 10 * time.Minute, Spool: "var/audit",
			MaxWaiting: 10 << 30},
		"{to: 's3://bucket/audit', roll: 1m, max_waiting: 1GiB}": {
			To: "s3://bucket/audit", Roll: time.Minute, Spool: filepath.Join(here, "var/audit"), MaxWaiting: 1 << 30},
		"{to: 's3://bucket', spool: /var/spool/capper}": {To: "s3://bucket", Roll: 10 * time.Minute,
			Spool: "/var/spool/capper", MaxWaiting: 10 << 30},
	} {
		c, err := Parse("capper.yaml", []byte(minimal+"audit: "+text+"\n"))
		require.NoError(t, err)
		require.Equal(t, want, c.Audit)
	}
}

func TestFaultsOfTheAudit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{}":                         "f:4:8: audit.to: is required: name the directory or s3://bucket/prefix",
		"{roll: 1m}":                 "audit.to: is required",
		"{to: 'gs://b'}":             "audit.to: must be a directory or s3://bucket/prefix",
		"{to: ''}":                   "audit.to: must not be empty",
		"{to: a, roll: 10ms}":        "audit.roll: must be at least 1s, got 10ms",
		"{to: a, spool: b}":          "audit.spool: requires an audit at s3://",
		"{to: a, max_waiting: 1}":    "audit.max_waiting: must be 1048576 to",
		"{to: a, max_waiting: much}": "audit.max_waiting: must be a size such as 16MiB",
		"{to: a, rol: 1m}":           `did you mean "roll"?`,
	} {
		_, err := Parse("f", []byte(minimal+"audit: "+text+"\n"))
		require.ErrorAs(t, err, new(*yamltree.Faults), text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestTheAuditChangesOnlyAtAStart(t *testing.T) {
	t.Parallel()
	was, given, err := parse("f", []byte(minimal+"audit: {to: a}\n"))
	require.NoError(t, err)
	is, givenNow, err := parse("f", []byte(minimal+"audit: {to: b}\n"))
	require.NoError(t, err)
	require.ErrorContains(t, was.reloadable("f", is, given, givenNow), "audit.to: requires a restart; the "+
		"configuration in force stays (a, now b)")
}

// TestAPolicyIsReadFromItsText checks that writing and reading the policy of a file gives the same policy.
func TestAPolicyIsReadFromItsText(t *testing.T) {
	t.Parallel()
	sample, err := os.ReadFile("../../testdata/capper.yaml")
	require.NoError(t, err)
	const odd = "suppress: {country/de: [push], b.c: {channels: [sms, email], even_exempt: true}}\nholdout: " +
		"{percent: 0.25, salt: \"<é\\\"\\u0007>\", channels: [email]}\n" +
		"quiet: [{from: '21:00', to: '08:00', zone: Europe/Berlin, sets: [country/de, vip-1]}, {from: '01:00', to: " +
		"'02:00'}]\ntimezone: Asia/Tokyo\n"
	for name, text := range map[string]string{"minimal": minimal, "full": full, "sample": string(sample),
		"withheld": full + odd, "uncapped": "segments: {source: d}\nlimits: {}\n"} {
		c, err := Parse("f", []byte(text))
		require.NoError(t, err, name)
		written := c.PolicyText
		read, err := ParsePolicy(written)
		require.NoError(t, err, "%s: %s", name, written)
		if len(c.Policy.Default) == 0 {
			read.Default = c.Policy.Default
		}
		require.Equal(t, c.Policy, read, "%s", written)

		whole, err := ParsePolicy([]byte(text))
		require.NoError(t, err)
		require.Equal(t, c.Policy, whole, "of the whole file, as well")
	}
}

func TestFaultsOfAPolicysText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "is empty",
		"channels: {push: 1}\n":            "limits: is required",
		"limits: {default: {daily: -1}}\n": "policy:1:27: limits.default.daily: must be 0 to",
		"limits: {}\nlimts: {}\n":          `did you mean "limits"?`,
	} {
		_, err := ParsePolicy([]byte(text))
		var faults *yamltree.Faults
		require.True(t, errors.As(err, &faults), "%v", err)
		require.ErrorContains(t, err, want)
	}
}

// TestAnEarlierPolicysTextIsRead checks that a policy stored by an earlier version is read correctly, with other
// spellings of the same values.
func TestAnEarlierPolicysTextIsRead(t *testing.T) {
	t.Parallel()
	const file = `segments: {source: d}
channels: {push: 1, email: 2}
limits:
  default: {daily: 3}
  segments: {vip: [{name: hourly, max: 2, window: 1h, channels: [push]}], new: []}
suppress: {opted-out: all, bounced: [email]} # the list of hard bounces
holdout: {percent: 0.5, salt: a}
quiet: [{from: '21:00', to: '08:00', zone: Europe/Berlin}]
timezone: Asia/Tokyo
`
	const earlier = `version: "VERSION"
channels:
  "email": 2
  "push": 1
limits:
  default:
DAILY
  segments:
    "new": []
    "vip":
      - {name: "hourly", max: 2, window: 1h, channels: ["push"]}
suppress:
  "opted-out": {channels: all, even_exempt: false}
  "bounced": {channels: ["email"], even_exempt: false}
holdout: {percent: 0.5, salt: "a"}
timezone: "Asia/Tokyo"
quiet:
  - {from: "21:00", to: "08:00", zone: "Europe/Berlin"}
`
	c, err := Parse("f", []byte(file))
	require.NoError(t, err)
	read, err := ParsePolicy([]byte(strings.NewReplacer("VERSION", c.Version, "DAILY",
		`    - {name: "daily", max: 3, window: 24h}`).Replace(earlier)))
	require.NoError(t, err)
	require.Equal(t, c.Policy, read)
	require.NotContains(t, string(c.PolicyText), "hard bounces", "comments stay in the file")
}

// TestOneVersionHasOnePolicyText checks that files which differ only in layout, anchors and comments have one version
// and one text.
func TestOneVersionHasOnePolicyText(t *testing.T) {
	t.Parallel()
	plain, err := Parse("f", []byte("segments: {source: d}\nlimits:\n  default: {daily: 3}\n  segments: "+
		"{a: {weekly: 9}, b: {weekly: 9}}\n"))
	require.NoError(t, err)
	anchored, err := Parse("f", []byte("{segments: {source: 'd'}, limits: "+
		"{default: {\"daily\": 3}, # three\n segments: "+
		"{a: &few {weekly: 9}, b: *few}}}\n"))
	require.NoError(t, err)
	require.Equal(t, plain.Version, anchored.Version)
	require.Equal(t, string(plain.PolicyText), string(anchored.PolicyText))
}

// requireReadable requires that the stored text of the policy reads back as the policy.
func requireReadable(t *testing.T, c *Config) {
	read, err := ParsePolicy(c.PolicyText)
	require.NoError(t, err, "%s", c.PolicyText)
	if len(c.Policy.Default) == 0 {
		read.Default = c.Policy.Default
	}
	require.Equal(t, c.Policy, read, "%s", c.PolicyText)
}
