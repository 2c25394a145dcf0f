package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

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

// The scripts share a service, at $URL.
func TestScripts(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}, segments: {active: {daily: 2}}}"))
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: func(env *testscript.Env) error { env.Setenv("URL", p.url); return nil },
		Cmds:  map[string]func(ts *testscript.TestScript, neg bool, args []string){"status": testkit.WantStatus("capper")},
	})
}
