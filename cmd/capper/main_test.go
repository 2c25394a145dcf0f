package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/objects/s3test"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// servers runs the tests of the package with an S3 server and a Redis Cluster.
type servers struct{ m *testing.M }

func (s servers) Run() int {
	defer testkit.RemovePrograms()
	return s3test.Main(func() int { return testcluster.Run(s.m) })
}

// TestMain lets tests run the real program as the command `capper`.
func TestMain(m *testing.M) {
	testkit.EndAtOnce()
	// Tests here mostly wait for programs. The command line's -parallel is read later, and goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testscript.Main(servers{m}, map[string]func(){"capper": main})
}

// scriptPacers are those of the scripts' service.
const scriptPacers = `pacers:
  daily: {limits: [{max: 10, window: 24h}, {max: 15, window: 48h}]}
  carrier: {rate: 1/m, max_wait: 10h}
  campaign: {limits: [{max: 50000, window: 1h}], per: message}
  both: {limits: [{max: 5, window: 1h}], rate: 1000/s}
  quick: {rate: 1000000/s}
  slow: {rate: 1/m}
  min: {limits: [{max: 1, window: 15s}]}
  used: {limits: [{max: 2, window: 1h}]}
  promo: {limits: [{max: 50000, window: 1h}], per: message}
  sender: {limits: [{max: 2, window: 1h}], per: key}
  number: {limits: [{max: 9, window: 1h}, {max: 3, window: 1m}], rate: 1/s, per: key}
  rated: {rate: 2/m, per: key}
  split: {rate: 250/s, shares: {otp: 20%, alerts: 5%}}
`

// take is `take PACER PERMITS [MESSAGE]` of scripts: permits, as far as there are some
// within an hour.
func take(ts *testscript.TestScript, _ bool, args []string) {
	permits, err := strconv.Atoi(args[1])
	ts.Check(err)
	request := api.PermitsRequest{Pacers: args[:1], Permits: permits, MaxWait: api.Wait(time.Hour),
		MessageID: strings.Join(args[2:], "")}
	c, err := client.New(client.Config{URL: ts.Getenv("URL")})
	ts.Check(err)
	got, err := c.Permits(context.Background(), request)
	ts.Check(err)
	ts.Logf("%+v", got)
}

// ready is `ready LOG` of scripts: it waits until the service that writes the log is ready, and puts its
// address into READY_URL.
func ready(ts *testscript.TestScript, _ bool, args []string) {
	var url string
	if !testkit.Poll(func() (ready bool) {
		log, _ := os.ReadFile(ts.MkAbs(args[0])) // the shell makes it
		url, ready = readyURL(string(log))
		return ready
	}) {
		ts.Fatalf("no service is ready: %s", ts.ReadFile(args[0]))
	}
	ts.Setenv("READY_URL", url)
}

// serveSets is a service with sets and an audit.
func serveSets(t *testing.T) *process {
	t.Helper()
	dir := t.TempDir()
	args := []string{"build", "--to", filepath.Join(dir, "segments")}
	for name, ids := range map[string]string{
		"--segment active": "seq 1 60", "--segment new": "seq 61 90", "--set vip": "seq 1 10",
		"--set opted-out":  "seq 1 2",
		"--set country/sg": "printf '%s\\n' 1 61 1000",
	} {
		kind, name, _ := strings.Cut(name, " ")
		file := filepath.Join(t.TempDir(), "ids.txt")
		out, err := exec.Command("sh", "-c", ids+" >"+file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		args = append(args, kind, name+"="+file)
	}
	out, err := exec.Command(segmentbuild(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	file := filepath.Join(dir, "capper.yaml")
	content := embedded(dir, "{default: [{name: daily, max: 1, window: 24h}, {name: strict, max: 0, window: 24h, "+
		"channels: [email], shadow: true}]}\nsuppress: {opted-out: all}\nsets: {small: {live: true, max_live: 2}}\n"+
		"audit: {to: "+filepath.Join(dir, "audit")+
		"}\n")
	write(t, file, strings.Replace(content, "{push: 1}", "{push: 1, email: 2}", 1))
	return serve(t, file)
}

// serveIDs is a service whose ids are of a kind: the first two are those of segment active, the first one is in set
// vip, and the third one is in set opted-out.
func serveIDs(t *testing.T, kind string, users ...string) (p *process, file string) {
	t.Helper()
	dir := t.TempDir()
	list := func(name string, ids ...string) string {
		at := filepath.Join(dir, name+".txt")
		write(t, at, strings.Join(ids, "\n")+"\n")
		return name + "=" + at
	}
	out, err := exec.Command(segmentbuild(t), "build", "--ids", kind, "--to", filepath.Join(dir, "segments"),
		"--segment", list("active", users[:2]...), "--set", list("vip", users[0]),
		"--set", list("opted-out", users[2])).CombinedOutput()
	require.NoError(t, err, "%s", out)
	file = filepath.Join(dir, "capper.yaml")
	write(t, file, "ids: "+kind+"\n"+embedded(dir, "{default: {daily: 1}, segments: {active: {daily: 2}}}")+
		"suppress: {opted-out: all}\nsets: {opted-out: {live: true}}\n")
	return serve(t, file), file
}

// The scripts share a service, at $URL, and one with sets, at $SETS_URL. That of $MESSAGES_URL is for the
// one that lists all that was sent.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}, segments: {active: {daily: 2}}}\n"+scriptPacers))
	sets, messages := serveSets(t), serveSets(t)
	const someUUID = "018f3c4e-7a1b-7c3d-9e5f-00000000000"
	uuids, uuidConfig := serveIDs(t, "uuid", someUUID+"1", someUUID+"2", someUUID+"9")
	uints, _ := serveIDs(t, "uint64", "1", "2", "9")
	texts, _ := serveIDs(t, "text", "a", "b", "out@x.com")
	redisConfig := filepath.Join(t.TempDir(), "redis.yaml")
	content, err := os.ReadFile(uuidConfig)
	require.NoError(t, err)
	write(t, redisConfig, strings.Replace(string(content), "store: {embedded: ", "store: {kind: redis, redis: "+
		"{addrs: [127.0.0.1:1]}}\n#", 1))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			testkit.UseShipped(t, env)
			env.Setenv("GOGC", "400") // hundreds of commands start, and none should collect the garbage of its start
			env.Setenv("URL", p.url)
			env.Setenv("SETS_URL", sets.url)
			env.Setenv("MESSAGES_URL", messages.url)
			env.Setenv("UUID_URL", uuids.url)
			env.Setenv("UINT64_URL", uints.url)
			env.Setenv("TEXT_URL", texts.url)
			env.Setenv("UUID_CONFIG", uuidConfig)
			env.Setenv("REDIS_CONFIG", redisConfig)
			env.Setenv("SEGMENTBUILD", segmentbuild(t))
			return nil
		},
		Cmds: map[string]testkit.Script{"status": testkit.WantStatus("capper"), "take": take, "ready": ready},
	})
}
