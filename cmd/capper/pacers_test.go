package main

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A reload changes what a pacer gives of what it has given already, while callers go on
// asking: more where a limit grew, nothing where it shrank below that.
func TestAReloadOfPacersAppliesToWhatIsRecorded(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	const limits = "{default: {daily: 1}}\npacers: "
	for kind, content := range map[string]func(dir, pacers string) string{
		"embedded": func(dir, pacers string) string { return embedded(dir, limits+pacers) },
		"redis": func(dir, pacers string) string {
			return redisConfig(dir, redis, "{push: 1}", limits+pacers,
				true)
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := servePaced(t, content)
			require.Empty(t, p.get("/v1/pacers")["pacers"])
			ask := p.callers(4)
			for _, step := range reloads {
				p.reload(step.pacers)
				ask(step.total)
			}
		})
	}
}

// reloads are pacers that follow each other, and how many permits callers who ask all
// the time have been granted then.
var reloads = []struct {
	pacers string
	total  int64
}{
	{"{x: {limits: [{max: 10, window: 1h}]}}", 10},
	{"{x: {limits: [{max: 20, window: 1h}]}}", 20},
	{"{x: {limits: [{max: 5, window: 1h}]}}", 20},
	{"{x: {limits: [{max: 21, window: 1h}], rate: 1/h}}", 20}, // the newest slot is less than an hour old
	{"{x: {limits: [{max: 21, window: 2h}]}}", 21},
	{"{x: {limits: [{max: 3, window: 1h}], per: message}}", 24},                  // the message has a log of its own
	{"{y: {limits: [{max: 1, window: 1h}]}}", 24},                                // x is unknown
	{"{y: {rate: 1/s}, x: {limits: [{max: 22, window: 1h}], rate: 1000/s}}", 25}, // x goes on with what is recorded
}

// atPace is a service whose pacers are changed.
type pacedProcess struct {
	*process
	file           string
	content        func(dir, pacers string) string
	client         *client.Client
	granted, calls atomic.Int64
}

func servePaced(t *testing.T, content func(dir, pacers string) string) *pacedProcess {
	t.Helper()
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-10")
	file := filepath.Join(dir, "capper.yaml")
	write(t, file, content(dir, "{}"))
	p := &pacedProcess{process: serve(t, file), file: file, content: content}
	var err error
	p.client, err = client.New(client.Config{URL: p.url, Attempts: 1})
	require.NoError(t, err)
	return p
}

// reload puts other pacers in force.
func (p *pacedProcess) reload(pacers string) {
	p.t.Helper()
	before := p.get("/v1/status")["config_version"]
	write(p.t, p.file, p.content(filepath.Dir(p.file), pacers))
	testkit.Eventually(p.t, func() bool { return p.get("/v1/status")["config_version"] != before }, "%s", p.log)
}

// callers ask for one permit of x after the other, to the end of the test. What it
// returns requires that so many have been granted, and that no more are.
func (p *pacedProcess) callers(n int) (total func(int64)) {
	var asking sync.WaitGroup
	var ended atomic.Bool
	for range n {
		asking.Go(func() {
			breath := time.NewTicker(10 * time.Millisecond)
			defer breath.Stop()
			for ; !ended.Load(); <-breath.C {
				p.take()
			}
		})
	}
	p.t.Cleanup(func() { ended.Store(true); asking.Wait() })
	return func(want int64) {
		p.t.Helper()
		asked := p.calls.Load()
		testkit.Eventually(p.t, func() bool { return p.granted.Load() >= want && p.calls.Load() >= asked+100 },
			"%d granted", p.granted.Load())
		require.Equal(p.t, want, p.granted.Load())
	}
}

func (p *pacedProcess) take() {
	got, err := p.client.Permits(context.WithoutCancel(p.t.Context()), api.PermitsRequest{Pacers: []string{"x"},
		Permits: 1, MessageID: "promo"})
	switch {
	case err == nil:
		p.granted.Add(int64(got.Granted))
	case !client.HasCode(err, client.CodeInvalidRequest): // of a pacer that is not configured
		p.t.Errorf("take: %v", err)
	}
	p.calls.Add(1)
}
