package doctor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// result is what came of looking at one thing.
type result string

// The results, from the best to the worst. Skipped is not known: it could not be looked at, or
// the configuration has no such thing.
const (
	OK      result = "ok"
	Skipped result = "skipped"
	Warning result = "warning"
	Failed  result = "failed"
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`        // as `--only` names it: segments, redis.nodes …
	Of     string `json:"of,omitempty"` // which of several: a node, a file
	Result result `json:"result"`
	Seen   string `json:"seen"`             // what there is
	Change string `json:"change,omitempty"` // what to do; only of warnings and failures
	Why    string `json:"why,omitempty"`    // what happens otherwise
}

// check looks at one thing, or at several of a kind.
type check struct {
	Name string // letters and dots, the room first
	// Within is how long it may take; 0: DefaultTime. What has not come back by then is
	// left behind, and reported as failed.
	Within time.Duration
	// Look adds what it finds. It is called once, from a goroutine of its own.
	Look func(ctx context.Context, notes *notes)
}

// defaultTime bounds a check that says nothing of it.
const defaultTime = 15 * time.Second

// notes takes the findings of one check. It is safe for concurrent use; what is added after the
// check's time is over is dropped.
type notes struct {
	check  string
	mu     sync.Mutex
	closed bool
	list   []Finding
}

func (n *notes) add(f Finding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		f.Check = n.check
		n.list = append(n.list, f)
	}
}

// OK notes that something is as it should be. of is which of several, "" for the only one.
func (n *notes) OK(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: OK, Seen: fmt.Sprintf(format, args...)})
}

// Skip notes that something was not looked at, and why.
func (n *notes) Skip(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: Skipped, Seen: fmt.Sprintf(format, args...)})
}

// Warn notes what works and is dangerous or dear.
func (n *notes) Warn(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Warning, Seen: seen, Change: change, Why: why})
}

// Fail notes what keeps the service from starting or breaks a promise.
func (n *notes) Fail(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Failed, Seen: seen, Change: change, Why: why})
}

// take ends the notes.
func (n *notes) take() []Finding {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.list
}

// Report is what all checks found, in their order.
type Report struct {
	Findings []Finding      `json:"findings"`
	Counts   map[result]int `json:"counts"`
}

// Worst is the worst result.
func (r *Report) Worst() result {
	order := []result{Failed, Warning, Skipped}
	for _, result := range order {
		if r.Counts[result] > 0 {
			return result
		}
	}
	return OK
}

// Run makes all checks at once, each within its time, and returns when the last has ended or
// was left behind.
func Run(ctx context.Context, checks []check) *Report {
	found := make([][]Finding, len(checks))
	var running sync.WaitGroup
	for i := range checks {
		running.Go(func() { found[i] = checks[i].run(ctx) })
	}
	running.Wait()
	report := &Report{Findings: slices.Concat(found...), Counts: map[result]int{}}
	for i := range report.Findings {
		report.Counts[report.Findings[i].Result]++
	}
	return report
}

// run is the findings of one check. A check that does not come back, as a file system may not, is
// left behind.
func (c *check) run(ctx context.Context) []Finding {
	within := c.Within
	if within == 0 {
		within = defaultTime
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	notes := &notes{check: c.Name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Look(ctx, notes)
	}()
	late := time.NewTimer(within + grace)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		notes.Fail("", fmt.Sprintf("check did not finish within %s",
			within), "find out what hangs: a file system, or a server "+
			"that accepts connections and does not answer",
			"the service also waits for it")
	}
	return notes.take()
}

// grace is what a check may take after its context has ended, to tell what it knows.
const grace = time.Second
