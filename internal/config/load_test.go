package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/capping/redisstore"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server/gate"
	"capper/internal/yamltree"
)

const minimal = `segments: {source: testdata/segments}
limits:
  default: {daily: 1, weekly: 3}
`

const full = `
server:
  listen: 0.0.0.0:8443
  admin_listen: 127.0.0.1:9090
  tls: {cert_file: cert.pem, key_file: key.pem}
  call_timeout: 2s
  stop_delay: 3s
  stop_timeout: 1m
  max_json_users: 10
  max_bitmap_users: 20
  max_body: 1MiB
  max_in_flight_users: 30
  host_names: [capper.internal, capper]
  bounds: {body_bytes: 2MiB, answer_bytes: 3MiB, gzip_ratio: 50, min_rate: 1MiB, connections: 70,
      permit_records_per_client: 7, permit_records: 8}
  api_keys:
    - {client: crm, namespace: growth, id: crm-1,
        sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [filter, read]}
  rate_limits:
    default: {users_per_second: 1000}
    clients:
      crm: {users_per_second: 5000, burst: 90000}
segments:
  source: s3://segments/prod
  refresh: 10s
  cache_dir: cache
  s3: {endpoint: "http://127.0.0.1:9000", region: eu-west-1, path_style: false}
store:
  kind: redis
  embedded: {path: x.db, cache_size: 1GiB}
  redis:
    addrs: [127.0.0.1:7000, 127.0.0.1:7001]
    username: capper
    replica_acks: 1
    clock_skew: 100ms
    create: false
    password_file: token
    allow_no_append_only: true
    tls: {enabled: true, server_name: redis, ca_file: ca.pem, cert_file: me.pem, key_file: me.key}
log: {level: debug, format: json}
channels: {push: 1, email: 2, sms: 3}
limits:
  default: &usual {daily: 1, weekly: 3}
  segments:
    new: *usual
    Gold-1: {daily: 9}
    free: {}
    none: {daily: 0}
    vip:
      - {name: daily, max: 3, window: 24h}
      - {name: push-gap, max: 1, window: 30m, channels: [push]}
      - {name: email-day, max: 1, calendar: day, timezone: Asia/Singapore, channels: [email, sms]}
`

func TestParseFillsDefaults(t *testing.T) {
	t.Parallel()
	c, err := Parse("capper.yaml", []byte(minimal))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:8080", c.Server.Listen)
	require.Equal(t, gate.Bounds{
		JSONUsers: 100_000, BitmapUsers: 1_000_000, BodyBytes: 16 << 20, InFlightUsers: 4_000_000,
		CallTimeout:   5 * time.Second,
		InFlightBytes: 512 << 20, AnswerBytes: 512 << 20, GzipRatio: 100, MinRate: 64 << 10, Connections: 16_384,
		PermitRecords: pacing.RecordBounds{Client: 250_000, All: 1_000_000},
	}, c.Server.Bounds)
	require.Equal(t, Embedded, c.Store.Kind)
	here, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "var/log.db"), c.Store.Embedded.Path)
	require.False(t, c.Store.Embedded.MustExist)
	require.EqualValues(t, 512<<20, c.Store.Embedded.CacheBytes)
	require.Equal(t, redisstore.Healthy, c.Store.Redis.Options.ReplicaAcks)
	require.Equal(t, 250*time.Millisecond, c.Store.Redis.Options.ClockSkew)
	require.False(t, c.Store.Redis.Options.MustExist)
	require.Equal(t, 30*time.Second, c.Segments.Refresher.Interval)
	require.Len(t, c.Version, 12)
	require.Equal(t, c.Version, c.Policy.Version)
	require.Equal(t, []capping.Limit{
		{Name: "daily", Max: 1, Window: 24 * time.Hour}, {Name: "weekly", Max: 3, Window: 168 * time.Hour},
	}, c.Policy.Default)
}

func TestParseReadsEveryKey(t *testing.T) {
	t.Parallel()
	c, err := Parse("capper.yaml", []byte(full))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:9090", c.Server.AdminListen)
	require.Equal(t, 3*time.Second, c.Server.StopDelay)
	require.Equal(t, []string{"capper.internal", "capper"}, c.Server.HostNames)
	require.Equal(t, gate.Bounds{
		JSONUsers: 10, BitmapUsers: 20, BodyBytes: 1 << 20, InFlightUsers: 30, CallTimeout: 2 * time.Second,
		InFlightBytes: 2 << 20, AnswerBytes: 3 << 20, GzipRatio: 50, MinRate: 1 << 20, Connections: 70,
		PermitRecords: pacing.RecordBounds{Client: 7, All: 8},
	}, c.Server.Bounds)
	require.Equal(t, 1000, c.Server.Access.Rate.UsersPerSecond)
	require.Equal(t, 1000, c.Server.Access.Rate.Largest())
	require.Equal(t, capping.Rate{UsersPerSecond: 5000, Burst: 90000}, c.Server.Access.Rates["crm"])
	require.Equal(t, []gate.Scope{gate.ScopeFilter, gate.ScopeRead}, c.Server.Access.Keys[0].Scopes)
	require.Equal(t, "growth", c.Server.Access.Keys[0].Namespace)
	require.False(t, *c.Segments.S3.PathStyle)
	require.Equal(t, redisstore.FixedAcks(1), c.Store.Redis.Options.ReplicaAcks)
	require.True(t, c.Store.Redis.Options.MustExist)
	require.True(t, c.Store.Redis.Options.WithoutAppendOnly)
	require.Equal(t, 100*time.Millisecond, c.Store.Redis.Options.ClockSkew)
	require.Equal(t, capping.Channel(3), c.Policy.Channels["sms"])
	require.Equal(t, c.Policy.Default, c.Policy.Segments["new"])
	require.Empty(t, c.Policy.Segments["free"])
	require.NotNil(t, c.Policy.Segments["free"], "configured as uncapped")
	require.Equal(t, 0, c.Policy.Segments["none"][0].Max)
	vip := c.Policy.Segments["vip"]
	require.Equal(t, capping.ChannelSetOf(1), vip[1].Channels)
	require.Equal(t, capping.CalendarDay, vip[2].Calendar)
	require.Equal(t, "Asia/Singapore", vip[2].Location.String())
}

// TestAddressesInEveryStyleOfList checks every notation of the same list of nodes.
func TestAddressesInEveryStyleOfList(t *testing.T) {
	t.Parallel()
	for _, addrs := range []string{
		"store: {kind: redis, redis: {addrs: [127.0.0.1:7000, node-2:7001], replica_acks: healthy, clock_skew: 250ms}}",
		"store:\n  kind: redis\n  redis: {addrs: [127.0.0.1:7000, node-2:7001], replica_acks: healthy, " +
			"clock_skew: 250ms}",
		"store: {kind: redis, redis: {addrs: ['127.0.0.1:7000', \"node-2:7001\"]}}",
		"store:\n  kind: redis\n  redis:\n    addrs: [127.0.0.1:7000, node-2:7001]",
		"store:\n  kind: redis\n  redis:\n    addrs:\n      - 127.0.0.1:7000\n      - node-2:7001",
	} {
		c, err := Parse("f", []byte(minimal+addrs+"\n"))
		require.NoError(t, err, addrs)
		require.Equal(t, []string{"127.0.0.1:7000", "node-2:7001"}, c.Store.Redis.Options.Addrs)
	}
}

func TestAByteOrderMarkAndWindowsLineEndsAreNoFaults(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", []byte("\ufeff"+strings.ReplaceAll(minimal, "\n", "\r\n")))
	require.NoError(t, err)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	limits := func(l string) string {
		return "segments: {source: d}\nchannels: {push: 1}\nlimits:\n  default: {daily: 1}\n  segments:\n    vip:\n" + l
	}
	for name, c := range map[string]struct{ yaml, want string }{
		"empty":           {"", "f: is empty"},
		"comment only":    {"# nothing\n", "f: is empty"},
		"second document": {minimal + "---\na: 1\n", "f:5:1: a second document begins here"},
		"syntax":          {"limits: [", "f:1:"},
		"tab":             {"limits:\n\tdefault: {}\n", "f:2:1: a tab begins this line, but YAML allows only blanks"},
		"not a mapping":   {"- a\n", "must be a mapping, got a list"},
		"unknown key":     {minimal + "limts: 1\n", `f:4:1: limts: is not a known key; did you mean "limits"?`},
		"key twice":       {minimal + "log: {level: info, level: warn}\n", "f:4:20: log.level: is given twice"},
		"case":            {minimal + "Log: {}\n", `did you mean "log"?`},
		"null":            {minimal + "log:\n", "f:4:1: log: must have a value"},
		"no segments":     {"limits: {default: {}}\n", "segments: is required"},
		"no limits":       {"segments: {source: d}\n", "limits: is required"},
		"no source": {"segments: {refresh: 1s}\nlimits: {default: {}}\n",
			"f:1:11: segments.source: is required"},
		"misspelt source": {"segments: {sorce: d}\nlimits: {default: {}}\n",
			`f:1:12: segments.sorce: is not a known key; did you mean "source"?`},
		"bad source": {"segments: {source: 'gs://b'}\nlimits: {default: {}}\n",
			"segments.source: must be a directory or s3://bucket/prefix"},
		"not utf-8": {"a: \xff\n", "must be UTF-8"},
		"fraction": {limits("      - {name: a, max: 3.7, window: 1h}\n"),
			"f:7:24: limits.segments.vip[0].max: must be a whole number in plain digits, got 3.7"},
		"string number": {limits("      - {name: a, max: '3', window: 1h}\n"),
			`must be a whole number in plain digits, got "3"`},
		"negative max": {limits("      - {name: a, max: -1, window: 1h}\n"), "must be 0 to 1000, got -1"},
		"huge max":     {limits("      - {name: a, max: 99999999999999999999, window: 1h}\n"), "max: must be"},
		"window zero": {limits("      - {name: a, max: 1, window: 0s}\n"),
			"limits.segments.vip[0].window: must be at least 1s, got 0s"},
		"window unit": {limits("      - {name: a, max: 1, window: 7d}\n"),
			`limits.segments.vip[0].window: must be a duration such as 30s or 24h, got "7d"; days are no unit here: ` +
				"write 168h"},
		"window in weeks": {limits("      - {name: a, max: 1, window: 2w}\n"),
			`got "2w"; weeks are no unit here: write 336h`},
		"window finer":    {limits("      - {name: a, max: 1, window: 1.0005s}\n"), "must be whole milliseconds"},
		"window too long": {limits("      - {name: a, max: 1, window: 9000h}\n"), "must be at most 8784h"},
		"window + calendar": {limits("      - {name: a, max: 1, window: 1h, calendar: day}\n"),
			"exactly one of window and calendar"},
		"neither": {limits("      - {name: a, max: 1}\n"), "exactly one of window and calendar"},
		"calendar word": {limits("      - {name: a, max: 1, calendar: hour}\n"),
			"must be one of day, week, month, got \"hour\""},
		"time zone": {limits("      - {name: a, max: 1, calendar: day, timezone: Mars/Base}\n"), "IANA"},
		"zone, rolling": {limits("      - {name: a, max: 1, window: 1h, timezone: UTC}\n"),
			"requires calendar: a rolling window"},
		"no name": {limits("      - {max: 1, window: 1h}\n"), "vip[0].name: is required"},
		"same name": {limits("      - {name: a, max: 1, window: 1h}\n      - {name: a, max: 1, window: 2h}\n"),
			`"a" is given twice`},
		"unknown channel": {limits("      - {name: a, max: 1, window: 1h, channels: [fax]}\n"),
			`channels[0]: must be one of the configured channels, got "fax"`},
		"no channel": {limits("      - {name: a, max: 1, window: 1h, channels: []}\n"), "must not be empty"},
		"short form word": {limits("      {hourly: 3}\n"), "vip.hourly: is not a known key; known are daily, " +
			"weekly; for another window, write limits as a list, such as [{name: monthly, max: 3, calendar: month}]"},
		"segment name": {minimal + "  segments: {'a b': {daily: 1}}\n",
			"limits.segments.a b: must be 1 to 64 letters"},
		"reserved segment": {minimal + "  segments: {default: {daily: 1}}\n",
			"limits.segments.default: must not be the name of a segment: this name stands for"},
		"octal": {limits("      - {name: a, max: 010, window: 1h}\n"),
			"must be a whole number in plain digits, got 010"},
		"separators": {limits("      - {name: a, max: 1_0, window: 1h}\n"),
			"must be a whole number in plain digits, got 1_0"},
		"no kind": {minimal + "store: {redis: {addrs: ['a:1']}}\n",
			"store.kind: is required if redis is configured"},
		"redis host": {minimal + "store: {kind: redis, redis: {addrs: [':6379']}}\n",
			"must be host:port with a host and a port from 1 to 65535, got \":6379\""},
		"redis port":  {minimal + "store: {kind: redis, redis: {addrs: ['a:0']}}\n", "port from 1 to 65535"},
		"redis blank": {minimal + "store: {kind: redis, redis: {addrs: ['a b:1']}}\n", "port from 1 to 65535"},
		"s3 slash": {"segments: {source: 's3:/b'}\nlimits: {default: {}}\n",
			"must be a directory or s3://bucket/prefix"},
		"same address": {"server: {listen: '127.0.0.1:80', admin_listen: '127.0.0.1:80'}\n" + minimal,
			"server.admin_listen: must differ from the address of listen"},
		"no scope": {"server: {api_keys: [{client: a, id: a, sha256: ab, scopes: []}]}\n" + minimal,
			"must name a scope"},
		"control character": {minimal + "channels: {\"a\\nb\": 1}\n", `channels."a\nb": must be 1 to 64 letters`},
		"channel number":    {minimal + "channels: {push: 0}\n", "channels.push: must be 1 to 255, got 0"},
		"same number": {minimal + "channels: {push: 1, sms: 1}\n",
			`channels.sms: must be unique, but 1 is also the number of "push"`},
		"open, no keys": {"server: {listen: 0.0.0.0:80}\n" + minimal, "server.api_keys: is required if listen is " +
			"not a loopback address"},
		"all addresses":  {"server: {listen: ':80'}\n" + minimal, "server.api_keys: is required"},
		"admin, no keys": {"server: {admin_listen: 10.0.0.1:80}\n" + minimal, "admin_listen is not a loopback address"},
		"address":        {"server: {listen: localhost}\n" + minimal, "must be host:port"},
		"port":           {"server: {listen: '127.0.0.1:99999'}\n" + minimal, "must be host:port"},
		"tls half":       {"server: {tls: {cert_file: a}}\n" + minimal, "must have both cert_file and key_file"},
		"size":           {"server: {max_body: 16MB}\n" + minimal, "must be a size such as 16MiB"},
		"low bounds": {"server: {bounds: {body_bytes: 1MiB}}\n" + minimal,
			"server.bounds.body_bytes: must be at least max_body"},
		"no records": {"server: {bounds: {permit_records: 0}}\n" + minimal,
			"server.bounds.permit_records: must be 1 to 1000000000"},
		"no connections": {"server: {bounds: {connections: 0}}\n" + minimal,
			"server.bounds.connections: must be 1 to 1000000"},
		"keys confirmed": {"server: {without_keys: true, api_keys: [{client: a, id: a, sha256: " +
			"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [read]}]}\n" + minimal,
			"server.without_keys: must not be true if api_keys are set"},
		"host name": {"server: {host_names: ['a:80']}\n" + minimal, "server.host_names[0]: must be a host name"},
		"size list": {"server: {max_body: [1]}\n" + minimal, "must be a size such as 16MiB"},
		"bad sha": {"server: {api_keys: [{client: a, id: a, sha256: ab, scopes: [read]}]}\n" + minimal,
			"must be the 64 hex digits"},
		"empty namespace": {"server: {api_keys: [{client: a, namespace: ''}]}\n" + minimal,
			"namespace: must not be empty"},
		"namespace": {"server: {api_keys: [{client: a, namespace: a b}]}\n" + minimal,
			"namespace: must be 1 to 64 letters"},
		"two namespaces": {"server: {api_keys: [{client: a, namespace: growth}, {client: b}, {client: a}]}\n" +
			minimal, `api_keys[2].namespace: must be the namespace of the other key of the client, "growth", got ""`},
		"scope": {"server: {api_keys: [{client: a, id: a, sha256: ab, scopes: [root]}]}\n" + minimal,
			"must be one of filter, read, admin"},
		"stranger's limit": {"server: {rate_limits: {clients: {crm: {users_per_second: 1}}}}\n" + minimal,
			`a key in server.api_keys, got "crm"`},
		"redis addrs": {minimal + "store: {kind: redis}\n", "store.redis.addrs: is required"},
		"password": {minimal + "store: {kind: redis, redis: {addrs: ['a:1'], password: hunter2}}\n",
			"CAPPER_REDIS_PASSWORD"},
		"half a pair": {minimal + "store: {redis: {tls: {cert_file: a}}}\n",
			"store.redis.tls: must have both cert_file and key_file, or neither"},
		"acks": {minimal + "store: {redis: {replica_acks: most}}\n",
			"store.redis.replica_acks: must be healthy or a number from 0 to 5, got \"most\""},
		"merge key":        {minimal + "log:\n  <<: {level: info}\n", "merge keys are not supported"},
		"alias of nothing": {minimal + "log: *a\n", "no earlier anchor has this name"},
		"tag":              {minimal + "log: !!map {}\n", "tags such as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(c.yaml))
			var faults *yamltree.Faults
			require.True(t, errors.As(err, &faults), "%v", err)
			require.Contains(t, err.Error(), c.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}

func TestEveryFaultIsReportedAtOnceInOrder(t *testing.T) {
	t.Parallel()
	_, err := Parse("capper.yaml", []byte(strings.Join([]string{
		"server: {listen: nowhere}",
		"segments: {source: d, refresh: 5}",
		"channels: {push: 1, email: 1}",
		"limits:",
		"  default: {daily: -3, wekly: 2}",
		"  segments:",
		"    vip:",
		"      - {name: gap, max: 1, window: 0s}",
		"      - {name: gap, max: x}",
	}, "\n")))
	require.EqualError(t, err, strings.Join([]string{
		`capper.yaml:1:18: server.listen: must be host:port, port 0 to 65535, got "nowhere"`,
		`capper.yaml:2:32: segments.refresh: must be a duration such as 30s or 24h, got 5; the unit is missing: write 5s or 5h`,
		`capper.yaml:3:28: channels.email: must be unique, but 1 is also the number of "push"`,
		`capper.yaml:5:20: limits.default.daily: must be 0 to 1000, got -3`,
		`capper.yaml:5:24: limits.default.wekly: is not a known key; did you mean "weekly"?`,
		`capper.yaml:8:37: limits.segments.vip[0].window: must be at least 1s, got 0s`,
		`capper.yaml:9:9: limits.segments.vip[1]: must have exactly one of window and calendar`,
		`capper.yaml:9:9: limits.segments.vip[1]: must be unique in its segment: "gap" is given twice`,
		`capper.yaml:9:26: limits.segments.vip[1].max: must be a whole number in plain digits, got "x"`,
	}, "\n"))
}

func FuzzParse(f *testing.F) {
	f.Add(minimal)
	f.Add(full)
	f.Add(minimal + fivePacers)
	f.Add(minimal + withheld)
	f.Fuzz(func(t *testing.T, yaml string) {
		c, err := Parse("f", []byte(yaml))
		require.True(t, (c == nil) != (err == nil))
		if c != nil {
			require.NotEmpty(t, c.Segments.Source)
			require.Positive(t, c.Policy.Retention(0))
			requireReadable(t, c)
			for _, p := range c.Pacers.Pacers {
				ask := pacing.Ask{Targets: []pacing.Target{{Pacer: p.Name, Limits: p.Judged()}},
					MaxWait: p.LongestWait()}
				require.NoError(t, ask.Check(), "a store takes it")
			}
			for i := range c.Policy.Quiet {
				hours := c.Policy.Quiet[i].Hours
				require.NotEqual(t, hours.From, hours.To)
			}
			if c.Policy.Holdout != nil {
				require.Positive(t, c.Policy.Holdout.Share.Percent())
			}
			for _, name := range c.Policy.Sets() {
				require.NoError(t, segments.CheckSetName(name))
			}
		}
	})
}

// TestOneWordInEveryPackage checks the words and bounds that must agree in packages without a common import.
func TestOneWordInEveryPackage(t *testing.T) {
	t.Parallel()
	require.Equal(t, api.NoSegment, segments.ReservedName)
	require.Equal(t, api.MaxMessageID, capping.MaxMessageID)
	require.Equal(t, []pacing.Per{api.PerMessage, api.PerKey}, []pacing.Per{pacing.PerMessage, pacing.PerKey})
	require.Equal(t, []string{api.LimitSuppressed, api.LimitHoldout, api.LimitQuiet},
		[]string{suppressedName, holdoutName, quietName})
	require.Equal(t, []any{api.MaxPacers, api.MaxPermits, api.MaxWait}, []any{pacing.MaxPacers, pacing.MaxPermits,
		pacing.MaxWait})
	longest := strings.Repeat("a", capping.MaxName)
	require.True(t, capping.IsName(longest))
	require.NoError(t, segments.CheckName(longest))
	for _, bad := range []string{"", longest + "a", ".a", "-a", "a b", "é", "a\n"} {
		require.False(t, capping.IsName(bad), bad)
		require.Error(t, segments.CheckName(bad), bad)
	}
}
