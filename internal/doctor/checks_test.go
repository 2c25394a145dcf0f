package doctor

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/config"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments/publish"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("CAPPER_REDIS_PASSWORD", "capper"); err != nil {
		panic(err)
	}
	os.Exit(s3test.Main(func() int { return testcluster.Run(m) }))
}

// place is a directory with a generation whose only set is opted-out.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	publishTo(t, filepath.Join(dir, "segments"), objects.S3Config{})
	return dir
}

func publishTo(t *testing.T, to string, s3 objects.S3Config) {
	t.Helper()
	at, err := objects.Open(t.Context(), to, s3)
	require.NoError(t, err)
	publisher := &publish.Publisher{Location: at, ToolVersion: "test"}
	base, err := publish.ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	users := new(bitmap.Set)
	for id := range uint32(1000) {
		users.Add(id)
	}
	_, err = publisher.Publish(t.Context(), &publish.Candidate{Names: []string{"active"},
		Bitmaps: []*bitmap.Bitmap{users.Bitmap()}}, base, "")
	require.NoError(t, err)
}

// subject is what a configuration file says.
func subject(t *testing.T, dir, content string) *Subject {
	t.Helper()
	file := filepath.Join(dir, "capper.yaml")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	s := &Subject{File: file, Cgroups: t.TempDir()} // what the tests themselves may have is another thing
	loaded, err := config.Load(file)
	if err == nil {
		loaded.Server.Bounds.Connections = 100
		s.Config = loaded
	}
	return s
}

const limits = "limits: {default: {daily: 1}}\n"

func embedded(rest string) string {
	return "segments: {source: segments, cache_dir: cache}\nstore: {kind: embedded, embedded: {path: log.db}}\n" +
		limits + rest
}

// only is the findings of one check, of the result.
func only(r *Report, check string, result result) (list []Finding) {
	for _, f := range r.Findings {
		if f.Check == check && f.Result == result {
			list = append(list, f)
		}
	}
	return list
}

// bad is every warning and failure, as text.
func bad(r *Report) string {
	var lines []string
	for _, f := range r.Findings {
		if f.Result == Warning || f.Result == Failed {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s", f.Result, f.Check, f.Of, f.Seen))
			if f.Change == "" || f.Why == "" {
				lines = append(lines, "  without what to change, or why")
			}
		}
	}
	return strings.Join(lines, "\n")
}

// lone requires that exactly one thing is bad, by its check and what was seen.
func lone(t *testing.T, r *Report, result result, check, seen string) {
	t.Helper()
	found := only(r, check, result)
	require.NotEmpty(t, found, bad(r))
	require.Contains(t, found[0].Seen, seen)
	require.NotEmpty(t, found[0].Change)
	require.NotEmpty(t, found[0].Why)
	for _, f := range r.Findings {
		if f.Result == Warning || f.Result == Failed {
			require.Equal(t, check, f.Check, bad(r))
		}
	}
}

func run(t *testing.T, s *Subject) *Report { return Run(t.Context(), List(s)) }

func TestAHealthyPlaceHasNothingBad(t *testing.T) {
	t.Parallel()
	s := subject(t, place(t), embedded(""))
	s.Users, s.Sends = 1_000_000, 5
	require.Empty(t, bad(run(t, s)))
	entries, err := os.ReadDir(filepath.Dir(s.File))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, []string{"capper.yaml", "segments"}, names, "nothing is left behind")
}

func TestEachFaultOfAPlaceIsTold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config  string
		prepare func(t *testing.T, dir string, s *Subject)
		result  result
		check   string
		seen    string
	}{
		"a fault of the file": {config: "segments: {}\n", result: Failed, check: "configuration.file",
			seen: "limits: is required"},
		"a file that is away": {config: embedded(""), prepare: func(_ *testing.T, _ string, s *Subject) {
			s.File,
				s.Config = "/nowhere.yaml", nil
		}, result: Failed, check: "configuration.file", seen: "no such file"},
		"nothing published": {config: strings.Replace(embedded(""), "source: segments", "source: elsewhere", 1),
			result: Failed, check: "segments.generation", seen: "no generation is published at this location"},
		"a set is missing": {config: embedded("suppress: {opted-out: all}\n"), result: Failed,
			check: "segments.generation", seen: "missing: opted-out"},
		"an old generation": {config: embedded(""), prepare: func(_ *testing.T, _ string, s *Subject) {
			s.Clock = func() time.Time { return time.Now().Add(200 * time.Hour) }
		}, result: Warning, check: "segments.generation", seen: "more than 168h"},
		"a damaged bitmap": {config: embedded(""), prepare: damage, result: Failed,
			check: "segments.generation", seen: "sha256"},
		"a cache in a file": {config: embedded(""), prepare: func(t *testing.T, dir string, _ *Subject) {
			touch(t, filepath.Join(dir, "cache"))
		}, result: Failed, check: "segments.cache", seen: "must be a directory"},
		"an audit in a file": {config: embedded("audit: {to: audit}\n"), prepare: func(t *testing.T, dir string,
			_ *Subject) {
			touch(t, filepath.Join(dir, "audit"))
		}, result: Failed, check: "audit", seen: "must be a directory"},
		"an audit of other ids": {config: embedded("audit: {to: audit}\n"), prepare: func(t *testing.T, dir string,
			_ *Subject) {
			raw, err := audit.IDs{Kind: ids.UUID, Check: "51b11a30"}.Seal()
			require.NoError(t, err)
			file := filepath.Join(dir, "audit", filepath.FromSlash(audit.IDsKey))
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, raw, 0o600))
		}, result: Failed, check: "audit", seen: "the records have ids of the kind uuid with the check 51b11a30, and " +
			"the ids of this deployment are dense"},
		"no room for the users": {config: embedded(""), prepare: func(_ *testing.T, _ string, s *Subject) {
			s.Users,
				s.Sends = 4_000_000_000, 1000
		}, result: Failed, check: "embedded.room", seen: "4000000000 users"},
		"a store that is away": {config: strings.Replace(embedded(""), "path: log.db", "path: log.db, create: false",
			1), result: Failed, check: "embedded.directory", seen: "the setting 'create' is false"},
		"a volume not mounted": {config: embedded(""), prepare: func(t *testing.T, dir string, _ *Subject) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "log.db.id"), []byte(`{"id":"a","mark":1}`), 0o600))
		}, result: Failed, check: "embedded.directory", seen: "belongs to one"},
		"a process that is gone": {config: embedded(""), prepare: func(t *testing.T, _ string, s *Subject) {
			s.Process,
				s.Proc = 999_999, proc(t, "limits", "")
		}, result: Failed, check: "process", seen: "process 999999"},
		"a network file system": {config: embedded(""), prepare: func(t *testing.T, dir string, s *Subject) {
			s.Proc = proc(t, "mountinfo", "25 1 0:23 / / rw - ext4 /dev/a rw\n26 25 0:24 / "+dir+
				" rw - nfs4 server:/x rw\n")
		}, result: Warning, check: "embedded.directory", seen: "is on nfs4"},
		"few open files": {config: embedded(""), prepare: func(t *testing.T, _ string, s *Subject) {
			s.Proc = proc(t, "limits", "Limit  Soft Limit  Hard Limit  Units\nMax open files            512         "+
				"         1024                 files\n")
		}, result: Warning, check: "process.files", seen: "the limit is 1024 open files"},
		"little memory": {config: embedded(""), prepare: func(t *testing.T, _ string, s *Subject) {
			s.Proc = proc(t, "cgroup", "0::/capper.service\n")
			s.Cgroups = t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(s.Cgroups, "capper.service"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(s.Cgroups, "capper.service", "memory.max"),
				[]byte("536870912\n"), 0o600))
		}, result: Warning, check: "process.memory", seen: "the control group /capper.service has 512 MiB"},
		"a listener without TLS": {
			config: embedded("server:\n  listen: 0.0.0.0:8080\n  admin_listen: 127.0.0.1:8081\n  bounds: " +
				"{connections: 1000}\n  api_keys: [{client: engine, id: a, sha256: " + strings.Repeat("ab", 32) +
				", scopes: [filter]}]\n"),
			result: Warning, check: "configuration.listen", seen: "without TLS",
		},
		"a key for everything": {
			config: embedded("server:\n  api_keys: [{client: engine, id: a, sha256: " + strings.Repeat("ab", 32) +
				", scopes: [filter, read, admin]}]\n"),
			result: Warning, check: "configuration.keys", seen: "may send and erase",
		},
		"a file for everybody": {
			config: embedded("server:\n  api_keys: [{client: engine, id: a, sha256: " + strings.Repeat("ab", 32) +
				", scopes: [filter]}]\n"),
			prepare: func(t *testing.T, _ string, s *Subject) { require.NoError(t, os.Chmod(s.File, 0o644)) },
			result:  Warning, check: "configuration.secrets", seen: "every user may read it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := place(t)
			s := subject(t, dir, test.config)
			if test.prepare != nil {
				test.prepare(t, dir, s)
			}
			lone(t, run(t, s), test.result, test.check, test.seen)
		})
	}
}

// Many keys that are as they should be are one line.
func TestKeysAreTold(t *testing.T) {
	t.Parallel()
	keys := ""
	for i := range 50 {
		keys += fmt.Sprintf("    - {client: team-%d, id: k%d, sha256: \"%064x\", scopes: [filter]}\n", i%25, i, i+1)
	}
	report := run(t, subject(t, place(t), embedded("server:\n  api_keys:\n"+keys)))
	require.Empty(t, bad(report))
	found := only(report, "configuration.keys", OK)
	require.Len(t, found, 1)
	require.Equal(t, "50 keys of 25 clients hold some scopes, and none holds all", found[0].Seen)
}

func touch(t *testing.T, file string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
}

func damage(t *testing.T, dir string, _ *Subject) {
	files, err := filepath.Glob(filepath.Join(dir, "segments", "bitmaps", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	content[len(content)-1] ^= 1
	require.NoError(t, os.Chmod(files[0], 0o600))
	require.NoError(t, os.WriteFile(files[0], content, 0o600))
}

// proc is a /proc whose process says one thing.
func proc(t *testing.T, name, content string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "self"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "self", name), []byte(content), 0o600))
	return dir
}

func TestS3(t *testing.T) {
	t.Parallel()
	bucket := s3test.Bucket(t)
	publishTo(t, "s3://"+bucket+"/prod", objects.S3Config{})
	content := func(place, endpoint string) string {
		return fmt.Sprintf("segments: {source: %q, cache_dir: cache, s3: {endpoint: %q}}\nstore: {kind: embedded, "+
			"embedded: {path: log.db}}\n", place, endpoint) + limits
	}
	good := func(w http.ResponseWriter, r *http.Request, server http.Handler) { server.ServeHTTP(w, r) }
	for name, test := range map[string]struct {
		bucket string
		answer func(w http.ResponseWriter, r *http.Request, server http.Handler)
		result result
		check  string
		seen   string
	}{
		"all rights": {bucket, good, OK, "segments.publisher", "wrote doctor-"},
		"no bucket":  {"absent-" + bucket, good, Failed, "segments.generation", "the bucket does not exist"},
		"read only": {bucket, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if r.Method == http.MethodPut || r.Method == http.MethodDelete || r.Method == http.MethodPost {
				deny(w)
				return
			}
			server.ServeHTTP(w, r)
		}, Failed, "segments.publisher", "AccessDenied"},
		"no list": {bucket, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if r.URL.Query().Get("list-type") != "" {
				deny(w)
				return
			}
			server.ServeHTTP(w, r)
		}, Warning, "segments.list", "AccessDenied"},
		"no conditions": {bucket, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			r.Header.Del("If-Match")
			r.Header.Del("If-None-Match")
			server.ServeHTTP(w, r)
		}, Failed, "segments.publisher", "conditional"},
		"another time": {bucket, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			server.ServeHTTP(dated{w, time.Now().Add(-time.Hour)}, r)
		}, Failed, "clocks.s3", "differs from this machine's by -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { test.answer(w, r, server) })
			})
			s := subject(t, t.TempDir(), content("s3://"+test.bucket+"/prod", endpoint))
			s.Publisher = true
			report := run(t, s)
			found := only(report, test.check, test.result)
			require.NotEmpty(t, found, bad(report))
			require.Contains(t, fmt.Sprint(found), test.seen)
			if test.result == OK {
				require.Empty(t, bad(report))
				at, err := objects.Open(t.Context(), "s3://"+bucket+"/prod", objects.S3Config{})
				require.NoError(t, err)
				left, err := at.List(t.Context(), "doctor-")
				require.NoError(t, err)
				require.Empty(t, left)
			}
		})
	}
}

func deny(w http.ResponseWriter) {
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
}

// dated answers with another time.
type dated struct {
	http.ResponseWriter
	at time.Time
}

func (d dated) WriteHeader(status int) {
	d.Header().Set("Date", d.at.UTC().Format(http.TimeFormat))
	d.ResponseWriter.WriteHeader(status)
}

// cli runs redis-cli as the administrator, and takes no error.
func cli(t *testing.T, addr string, args ...string) {
	t.Helper()
	require.NotContains(t, ask(t, addr, args...), "ERR")
}

func ask(t *testing.T, addr string, args ...string) string {
	t.Helper()
	host, port, _ := strings.Cut(addr, ":")
	out, err := exec.Command("redis-cli", append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

var goodSettings = []string{"maxmemory 1gb", "repl-backlog-size 64mb", "client-output-buffer-limit replica 512mb " +
	"256mb 60"}

func redisAt(addr, rest string) string {
	return "segments: {source: segments, cache_dir: cache}\nstore: {kind: redis, redis: {addrs: [\"" + addr +
		"\"], username: capper" + rest + "}}\n" + limits
}

func TestRedis(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 2, Settings: goodSettings})
	master, replica := c.Addrs[0], c.Addrs[len(c.Addrs)-1]
	dir := place(t)
	healthy := func() *Subject { return subject(t, dir, redisAt(master, "")) }
	testkit.Eventually(t, func() bool { return bad(run(t, healthy())) == "" })
	for _, test := range []struct {
		name        string
		do, undo    []string
		at          string
		change      func(*Subject)
		result      result
		check, seen string
	}{
		{name: "evicts", at: master, do: []string{"config", "set", "maxmemory-policy", "allkeys-lru"},
			undo: []string{"config", "set", "maxmemory-policy", "noeviction"}, result: Failed,
			check: "redis.settings", seen: "allkeys-lru"},
		{name: "no append-only file", at: replica, do: []string{"config", "set", "appendonly", "no"},
			undo: []string{"config", "set", "appendonly", "yes"}, result: Failed, check: "redis.settings",
			seen: "appendonly is no"},
		{name: "small lists", at: master, do: []string{"config", "set", "hash-max-listpack-entries", "64"},
			undo: []string{"config", "set", "hash-max-listpack-entries", "512"}, result: Warning,
			check: "redis.settings", seen: "hash-max-listpack-entries is 64"},
		{name: "a right is missing", at: replica, do: []string{"acl", "setuser", "capper", "-hmget"},
			undo: []string{"acl", "setuser", "capper", "+hmget"}, result: Failed, check: "redis.rights",
			seen: "may not run hmget"},
		{name: "the user default lacks a right", at: replica, do: []string{"acl", "setuser", "default", "-hset"},
			undo: []string{"acl", "setuser", "default", "+hset"}, result: Failed, check: "redis.settings",
			seen: "the Redis user default may not run hset"},
		{name: "nobody may see its rights", at: replica, do: []string{"acl", "setuser", "capper", "-acl|dryrun"},
			undo: []string{"acl", "setuser", "capper", "+acl|dryrun"}, result: Warning, check: "redis.settings",
			seen: "may not run acl|dryrun"},
		{name: "role is missing", at: replica, do: []string{"acl", "setuser", "capper", "-role"},
			undo: []string{"acl", "setuser", "capper", "+role"}, result: Warning, check: "redis.rights",
			seen: "may not run role"},
		{name: "a slow failover", at: master, do: []string{"config", "set", "cluster-node-timeout", "60000"},
			undo: []string{"config", "set", "cluster-node-timeout", "2000"}, result: Warning,
			check: "redis.cluster", seen: "cluster-node-timeout is 1m0s"},
		{name: "one shard ends all", at: replica, do: []string{"config", "set", "cluster-require-full-coverage", "yes"},
			undo: []string{"config", "set", "cluster-require-full-coverage", "no"}, result: Warning,
			check: "redis.settings", seen: "cluster-require-full-coverage is yes: while one shard has no master, " +
				"the users of all shards are unavailable"},
		{name: "its settings are hidden", at: master, do: []string{"acl", "setuser", "capper", "-config|get"},
			undo: []string{"acl", "setuser", "capper", "+config|get"}, result: Warning, check: "redis.settings",
			seen: "hides cluster-require-full-coverage"},
		{name: "no maxmemory", at: master, do: []string{"config", "set", "maxmemory", "0"},
			undo: []string{"config", "set", "maxmemory", "1gb"}, result: Warning, check: "redis.memory",
			seen: "maxmemory is not set"},
		{name: "a small backlog", at: master, do: []string{"config", "set", "repl-backlog-size", "1mb"},
			undo: []string{"config", "set", "repl-backlog-size", "64mb"}, result: Warning,
			check: "redis.replication", seen: "repl-backlog-size is 1 MiB"},
		{name: "small buffers", at: master, do: []string{"config", "set", "client-output-buffer-limit",
			"replica 1mb 1mb 60"}, undo: []string{"config", "set", "client-output-buffer-limit",
			"replica 512mb 256mb 60"}, result: Warning, check: "redis.replication",
			seen: "client-output-buffer-limit of replicas is 1 MiB"},
		{name: "many users", at: master, change: func(s *Subject) { s.Users, s.Sends, s.Density = 270_000_000, 5, 1 },
			result: Failed, check: "redis.memory", seen: "270000000 users"},
		{name: "a clock that is off", at: master,
			change: func(s *Subject) { s.Clock = func() time.Time { return time.Now().Add(3 * time.Second) } },
			result: Failed, check: "clocks.redis", seen: "by -3"},
		{name: "no store", at: master, change: func(s *Subject) { s.Config.Store.Redis.Options.MustExist = true },
			result: Failed, check: "redis.store", seen: "the setting 'create' is false"},
	} {
		if test.do != nil {
			cli(t, test.at, test.do...)
		}
		s := healthy()
		if test.change != nil {
			test.change(s)
		}
		var report *Report
		testkit.Eventually(t, func() bool { // of a server that is late nothing is known
			report = run(t, s)
			return len(only(report, test.check, test.result)) > 0
		}, test.name)
		if test.undo != nil {
			cli(t, test.at, test.undo...)
		}
		require.Contains(t, fmt.Sprint(only(report, test.check, test.result)), test.seen, test.name)
	}
	fillMemory(t, healthy, master)
	breakSnapshots(t, replica)
	testkit.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(only(run(t, healthy()), "redis.persistence", Failed)),
			"rdb_last_bgsave_status is err")
	})
	require.NoError(t, c.Kill(replica))
	testkit.Eventually(t, func() bool {
		report := run(t, healthy())
		return len(only(report, "redis.reach", Warning)) > 0 &&
			strings.Contains(fmt.Sprint(only(report, "redis.replicas", Warning)), "1 of 2 replicas work")
	})
}

// fillMemory sets maxmemory around what a master uses: a server that is full is a failure, one that nearly is a
// warning.
func fillMemory(t *testing.T, healthy func() *Subject, master string) {
	t.Helper()
	for share, result := range map[float64]result{0.5: Failed, 0.99: Failed, 1.15: Warning,
		3: OK} {
		testkit.Eventually(t, func() bool {
			used, err := strconv.ParseFloat(regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(ask(t, master,
				"info", "memory"))[1], 64)
			require.NoError(t, err)
			cli(t, master, "config", "set", "maxmemory", strconv.FormatInt(int64(share*used), 10))
			report := run(t, healthy())
			return strings.Contains(fmt.Sprint(only(report, "redis.memory", result)), "master "+master)
		}, "maxmemory is %v of what is used", share)
	}
	cli(t, master, "config", "set", "maxmemory", "1gb")
}

// Redis' default has one shard without a master end all of them: the doctor tells which shard, and which setting.
func TestWhyAClusterDoesNotServe(t *testing.T) {
	t.Parallel()
	for coverage, want := range map[string][2]string{
		"no": {"cluster_state is ok, and 10922 of 16384 slots have a working master",
			"users of slots without a working master are unavailable"},
		"yes": {"cluster_state is fail, and 10922 of 16384 slots have a working master",
			"cluster-require-full-coverage is yes: while one slot has no master, every server rejects all calls"},
	} {
		t.Run(coverage, func(t *testing.T) {
			t.Parallel()
			c := testcluster.Start(t, testcluster.Options{Settings: append(slices.Clone(goodSettings),
				"cluster-require-full-coverage "+coverage)})
			require.NoError(t, c.Kill(c.Addrs[1]))
			var found string
			testkit.Eventually(t, func() bool {
				found = fmt.Sprint(only(run(t, subject(t, place(t), redisAt(c.Addrs[0], ", replica_acks: 0"))),
					"redis.cluster", Failed))
				return strings.Contains(found, want[0])
			}, want[0])
			require.Contains(t, found, "considers "+c.Addrs[1]+" lost")
			require.Contains(t, found, want[1])
		})
	}
}

// breakSnapshots has a server fail to write one: a directory is where the file belongs.
func breakSnapshots(t *testing.T, addr string) {
	t.Helper()
	dir := strings.Fields(ask(t, addr, "config", "get", "dir"))[1]
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "dump.rdb")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "dump.rdb", "in the way"), 0o755))
	require.Eventually(t, func() bool {
		ask(t, addr, "bgsave")
		return strings.Contains(ask(t, addr, "info", "persistence"), "rdb_last_bgsave_status:err")
	}, testkit.Patience, 50*time.Millisecond)
}

func TestRedisThatCannotBeReached(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	dir := place(t)
	for content, seen := range map[string]string{
		redisAt("127.0.0.1:1", ""):                                "nothing listens at",
		redisAt(server.Addrs[0], ", tls: {enabled: true}"):        "speaks plain Redis and not TLS",
		redisAt(server.Addrs[0], ", password_file: missing.pass"): "must not both be set",
	} {
		report := run(t, subject(t, dir, content))
		require.Contains(t, fmt.Sprint(only(report, "redis.reach", Failed)), seen)
	}
	report := run(t, subject(t, dir, redisAt("127.0.0.1:1", ", tls: {enabled: true}")))
	require.Empty(t, only(report, "redis.certificates", Failed), "a server that is away shows none")
	require.Len(t, only(report, "redis.certificates", Skipped), 1)
	require.NoError(t, server.Pause(server.Addrs[0]))
	t.Cleanup(func() { _ = server.Resume(server.Addrs[0]) })
	report = run(t, subject(t, dir, redisAt(server.Addrs[0], ""))) // which a server that hangs does not hang
	require.NotEmpty(t, only(report, "redis.reach", Failed), bad(report))
	require.NotContains(t, fmt.Sprint(report), `capper" "capper`)
}
