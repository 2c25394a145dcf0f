package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"capper/client"
	"capper/client/api"
	"capper/internal/objects/s3test"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// servers runs the tests of the package with an S3 server and a Redis Cluster.
type servers struct{ m *testing.M }

func (s servers) Run() int {
	defer os.RemoveAll(toolDir)
	return s3test.Main(func() int { return testcluster.Run(s.m) })
}

// TestMain lets tests run the real program as the command `capper`.
func TestMain(m *testing.M) {
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
  min: {limits: [{max: 1, window: 3s}]}
  used: {limits: [{max: 2, window: 1h}]}
  promo: {limits: [{max: 50000, window: 1h}], per: message}
`

// take is `take PACER PERMITS [MESSAGE]` of scripts: permits, as far as there are some
// within an hour.
func take(ts *testscript.TestScript, _ bool, args []string) {
	permits, err := strconv.Atoi(args[1])
	ts.Check(err)
	request := client.PermitsRequest{Pacers: args[:1], Permits: permits, MaxWait: api.Wait(time.Hour), MessageID: strings.Join(args[2:], "")}
	c, err := client.New(client.Config{URL: ts.Getenv("URL")})
	ts.Check(err)
	got, err := c.Permits(context.Background(), request)
	ts.Check(err)
	ts.Logf("%+v", got)
}

// The scripts share a service, at $URL.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}, segments: {active: {daily: 2}}}\n"+scriptPacers))
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: func(env *testscript.Env) error { env.Setenv("URL", p.url); return nil },
		Cmds:  map[string]testkit.Script{"status": testkit.WantStatus("capper"), "take": take},
	})
}
