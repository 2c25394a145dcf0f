package doctor

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/segments"
)

// said is what is bad of servers that say these things: a line for each, as "result of: seen".
func said(t *testing.T, judge func(*servers, *notes, *redisstore.Report), r *redisstore.Report) []string {
	t.Helper()
	s := &servers{Subject: new(Subject)}
	report := Run(t.Context(),
		[]check{{Name: "x", Look: func(_ context.Context, n *notes) { judge(s, n, r) }}})
	var lines []string
	for _, f := range report.Findings {
		if f.Result == Warning || f.Result == Failed {
			require.NotEmpty(t, f.Change)
			require.NotEmpty(t, f.Why)
			lines = append(lines, fmt.Sprintf("%s %s: %s", f.Result, f.Of, f.Seen))
		}
	}
	return lines
}

// Which copies share a machine is told by addresses, which servers on one machine do not have.
func TestSpreadOverHosts(t *testing.T) {
	t.Parallel()
	at := func(cluster bool, pairs ...string) *redisstore.Report {
		r := &redisstore.Report{Cluster: cluster}
		for i := 0; i < len(pairs); i += 2 {
			r.Nodes = append(r.Nodes, &redisstore.Node{Addr: pairs[i], Master: pairs[i+1]})
		}
		return r
	}
	good := at(true, "10.0.0.1:7000", "", "10.0.0.2:7000", "", "10.0.0.3:7000", "", "10.0.0.2:7001", "10.0.0.1:7000",
		"10.0.0.3:7001", "10.0.0.2:7000", "10.0.0.1:7001", "10.0.0.3:7000")
	require.Empty(t, said(t, (*servers).judgeSpread, good))
	good.Nodes[3].Addr = "10.0.0.1:7002"
	require.Equal(t, []string{"warning replica 10.0.0.1:7002: replica is on the host of its master 10.0.0.1:7000"},
		said(t, (*servers).judgeSpread, good))
	require.Equal(t, []string{"warning 10.0.0.1: host has 2 of 3 masters"}, said(t, (*servers).judgeSpread,
		at(true, "10.0.0.1:7000", "", "10.0.0.1:7001", "", "10.0.0.3:7000", "")))
	require.Equal(t, []string{"warning replica 10.0.0.1:7001: replica is on the host of its master 10.0.0.1:7000"},
		said(t, (*servers).judgeSpread,
			at(false, "10.0.0.1:7000", "", "10.0.0.1:7001", "10.0.0.1:7000")))
	require.Equal(t, []string{"warning replica [2001:db8::1]:7001: replica is on the host of its master " +
		"[2001:db8::1]:7000"},
		said(t, (*servers).judgeSpread,
			at(true, "[2001:db8::1]:7000", "", "[2001:db8::1]:7001", "[2001:db8::1]:7000", "[2001:db8::2]:7000", "")))
	require.Empty(t, said(t, (*servers).judgeSpread, at(true, "127.0.0.1:7000", "", "127.0.0.1:7001",
		"127.0.0.1:7000")), "a laptop")
}

// What servers say of their versions, engines among them.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	of := func(infos ...string) *redisstore.Report {
		r := new(redisstore.Report)
		for i, info := range infos {
			r.Nodes = append(r.Nodes, &redisstore.Node{Addr: fmt.Sprintf("10.0.0.%d:6379", i),
				Facts: topology.ParseInfo("# Server\r\n" + info)})
		}
		return r
	}
	const redis7, redis8, valkey = "redis_version:7.0.15\r\nredis_mode:cluster\r\n", "redis_version:8.0.2\r\n",
		"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n"
	require.Empty(t, said(t, (*servers).judgeVersions, of(redis7, redis7)))
	require.Equal(t, []string{"warning versions: mixed: Redis 7.0.15, Redis 8.0.2"}, said(t, (*servers).judgeVersions,
		of(redis8, redis7, redis7)))
	require.Equal(t, []string{"warning versions: mixed: Redis 7.0.15, Valkey 8.1.1"}, said(t, (*servers).judgeVersions,
		of(redis7, valkey)))
}

// What servers say of what they could not write.
func TestFailedPersistence(t *testing.T) {
	t.Parallel()
	of := func(info string) *redisstore.Report {
		return &redisstore.Report{Nodes: []*redisstore.Node{{Addr: "10.0.0.1:6379",
			Facts: topology.ParseInfo("# Persistence\r\nloading:0\r\naof_enabled:1\r\n" + info)}}}
	}
	require.Empty(t, said(t, (*servers).judgePersistence,
		of("aof_last_write_status:ok\r\nrdb_last_bgsave_status:ok\r\naof_last_bgrewrite_status:ok\r\n")))
	require.Equal(t, []string{"failed master 10.0.0.1:6379: aof_last_write_status is err"},
		said(t, (*servers).judgePersistence, of("aof_last_write_status:err\r\n")))
	require.Equal(t, []string{"failed master 10.0.0.1:6379: aof_last_bgrewrite_status is err"},
		said(t, (*servers).judgePersistence, of("aof_last_bgrewrite_status:err\r\n")))
	require.Equal(t, []string{"warning master 10.0.0.1:6379: server paused for 900ms at its latest fork"},
		said(t, (*servers).judgePersistence, of("latest_fork_usec:900000\r\n")))
}

// The garbage collector's bound, in the environment of a process, against that of its group.
func TestGoMemoryLimit(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"":                     "warning GOMEMLIMIT not set, and the control group /capper.service has a memory limit",
		"GOMEMLIMIT=off":       "warning GOMEMLIMIT not set, and the control group /capper.service has a memory limit",
		"GOMEMLIMIT=600MiB":    "warning GOMEMLIMIT 600MiB exceeds the available memory",
		"GOMEMLIMIT=1GiB":      "warning GOMEMLIMIT 1GiB exceeds the available memory",
		"GOMEMLIMIT=460MiB":    "ok GOMEMLIMIT 460MiB",
		"GOMEMLIMIT=482344960": "ok GOMEMLIMIT 482344960",
	} {
		s := subject(t, place(t), embedded(""))
		s.Process, s.Proc, s.Cgroups = 42, t.TempDir(), t.TempDir()
		for name, content := range map[string]string{
			filepath.Join(s.Proc, "42", "environ"):                   "HOME=/\x00" + given + "\x00",
			filepath.Join(s.Proc, "42", "cgroup"):                    "0::/capper.service\n",
			filepath.Join(s.Cgroups, "capper.service", "memory.max"): "536870912\n",
		} {
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		}
		var found []string
		for _, f := range run(t, s).Findings {
			if f.Of == "GOMEMLIMIT" {
				found = append(found, fmt.Sprintf("%s %s %s", f.Result, f.Of, f.Seen))
			}
		}
		require.Equal(t, []string{want}, found, given)
	}
}

// A collector that takes an empty request is asked for nothing else; what does not is told with its reason.
func TestTracing(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		asked = append(asked, fmt.Sprintf("%s %s %s %d", r.Method, r.URL.Path, r.Header.Get("Content-Type"), len(body)))
		mu.Unlock()
		switch {
		case strings.HasPrefix(r.URL.Path, "/refuses"):
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path != "/v1/traces":
			http.NotFound(w, r)
		}
	}))
	defer collector.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	of := func(endpoint string) *Report {
		return run(t, subject(t, place(t), embedded("tracing: {endpoint: \""+endpoint+"\"}\n")))
	}
	report := of(collector.URL)
	require.Empty(t, bad(report))
	require.Equal(t, "the collector accepts trace spans", only(report, "tracing", OK)[0].Seen)
	require.Equal(t, []string{"POST /v1/traces application/x-protobuf 0"}, asked, "no byte is told")
	lone(t, of(collector.URL+"/wrong"), Warning, "tracing", "404")
	lone(t, of(collector.URL+"/refuses"), Warning, "tracing", "401")
	lone(t, of(closed.URL), Warning, "tracing", "connection refused")
	require.Len(t, only(run(t, subject(t, place(t), embedded(""))), "tracing", Skipped), 1)
}

// What listens may be anything: one that sends a line without an end is refused soon, and takes no memory to speak of.
func TestAServerWithoutEnd(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer listener.Close()
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { sendWithoutEnd(conn) })
		}
	})
	before := allocated()
	report := run(t, subject(t, place(t), redisAt(listener.Addr().String(), "")))
	require.Contains(t, fmt.Sprint(only(report, "redis.reach", Failed)),
		"sent a response of 8388608 bytes, longer than any Redis response")
	require.Less(t, allocated()-before, uint64(1<<30), "in all, of everything that the tests beside it take as well")
}

func sendWithoutEnd(conn net.Conn) {
	defer conn.Close()
	if _, err := bufio.NewReader(conn).ReadByte(); err != nil {
		return
	}
	_, err := conn.Write([]byte("+"))
	for line := bytes.Repeat([]byte("x"), 1<<16); err == nil; {
		_, err = conn.Write(line)
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// A start that is refused is told in one place, and nothing beside says that it could be made.
func TestAStoreThatIsAwayLetsNoServiceStart(t *testing.T) {
	t.Parallel()
	dir := place(t)
	require.NotEmpty(t, only(run(t, subject(t, dir, embedded(""))), "embedded.service", OK))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "log.db.id"), []byte(`{"id":"a","mark":1}`), 0o600))
	report := run(t, subject(t, dir, embedded("")))
	require.NotEmpty(t, only(report, "embedded.directory", Failed))
	require.Empty(t, only(report, "embedded.service", OK))
	require.Contains(t, only(report, "embedded.service", Skipped)[0].Seen, "no service can start")
}

// Rights are what to grant where they are missing, and not where nobody answers or knows who asks.
func TestAdviceAboutTheAuditInS3(t *testing.T) {
	t.Parallel()
	refusing := func(code string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>no</Message></Error>`,
				code)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	for endpoint, advice := range map[string]string{
		refusing("AccessDenied"):       "grant s3:PutObject",
		refusing("InvalidAccessKeyId"): "valid credentials",
		"http://127.0.0.1:1":           "can reach the endpoint",
	} {
		t.Run(advice, func(t *testing.T) {
			t.Parallel()
			audit := "audit: {to: \"s3://records/prod\", spool: spool, max_waiting: 1MiB}\n"
			s := subject(t, place(t), strings.Replace(embedded(audit), "cache_dir: cache",
				fmt.Sprintf("cache_dir: cache, s3: {endpoint: %q, path_style: true}", endpoint), 1))
			report := Run(t.Context(), []check{auditPlace(s)})
			found := only(report, "audit", Failed)
			require.Len(t, found, 1, report)
			require.Contains(t, found[0].Change, advice)
		})
	}
}

// A right that the store goes on without is one verdict, and so is the file of a replica that is still filled.
func TestOneVerdictOfEachServer(t *testing.T) {
	t.Parallel()
	role := `node 10.0.0.1:6379: the user "capper" may not run role: a send is lost: add +role to the user's rights (deploy/redis.acl)`
	off := fmt.Errorf("node 10.0.0.1:6379: appendonly is no: a master that restarts comes back empty: set " +
		"appendonly yes")
	of := func(master, configured, info string) *redisstore.Report {
		return &redisstore.Report{Nodes: []*redisstore.Node{{
			Addr: "10.0.0.1:6379", Master: master, Facts: topology.ParseInfo("# Persistence\r\n" + info),
			Settings: map[string]string{"appendonly": configured},
			Survey:   topology.Survey{Findings: topology.Findings{Refusals: []error{off}, Warnings: []string{role}}},
		}}}
	}
	const failed, master = "failed replica 10.0.0.1:6379: appendonly is no: a master that restarts comes back empty",
		"10.0.0.2:6379"
	require.Equal(t, []string{`warning replica 10.0.0.1:6379: the user "capper" may not run role`},
		said(t, (*servers).judgeRights, of(master, "", "loading:0\r\n")))
	require.Empty(t, said(t, (*servers).judgeSettings, of(master, "", "loading:1\r\n")))
	require.Empty(t, said(t, (*servers).judgeSettings, of(master, "", "loading:0\r\nmaster_sync_in_progress:1\r\n")))
	require.Empty(t, said(t, (*servers).judgeSettings, of(master, "yes", "loading:0\r\n")))
	require.Equal(t, []string{failed}, said(t, (*servers).judgeSettings, of(master, "", "loading:0\r\n")))
	require.Equal(t, []string{failed}, said(t, (*servers).judgeSettings, of(master, "no", "loading:1\r\n")))
	require.Equal(t, []string{strings.Replace(failed, "replica", "master", 1)}, said(t, (*servers).judgeSettings,
		of("", "yes", "loading:1\r\n")))
}

func TestTheAgeOfAYoungGenerationHasSeconds(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]string{
		17 * time.Second: "generation was created 17s ago", -2 * time.Second: "generation was created 0s ago",
		100*time.Minute + 17*time.Second: "generation was created 1h40m0s ago",
		-5 * time.Minute:                 "the generation was created 5m0s in the future",
		8 * 24 * time.Hour:               "the generation is 192h0m0s old, more than 168h0m0s",
	} {
		s, n := &Subject{Clock: func() time.Time { return made.Add(age) }}, new(notes)
		s.judgeAge(n, &segments.Manifest{CreatedAt: made})
		require.Len(t, n.list, 1)
		require.Equal(t, want, n.list[0].Seen)
	}
}
