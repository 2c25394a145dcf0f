package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// result is the result of one check.
type result string

// These are the results from best to worst. Skipped means that the state is unknown: the check was not possible, or
// the configuration does not use the checked part.
const (
	OK      result = "ok"
	Skipped result = "skipped"
	Warning result = "warning"
	Failed  result = "failed"
)

// Finding is one result of a check, with its explanation.
type Finding struct {
	Check  string `json:"check"`        // name of the check for `--only`: segments, redis.nodes …
	Of     string `json:"of,omitempty"` // which of several: a node, a file
	Result result `json:"result"`
	Seen   string `json:"seen"`             // the state that the check found
	Change string `json:"change,omitempty"` // the change to make; only for warnings and failures
	Why    string `json:"why,omitempty"`    // the consequence without the change
}

// check inspects one part of the environment, or several parts of one kind.
type check struct {
	Name string // letters and dots, the room first
	// Within is the longest time that the check may take; 0 means defaultTime. After it, the doctor abandons the
	// check and reports it as failed.
	Within time.Duration
	// Look adds the findings. It is called once, in a goroutine of its own.
	Look func(ctx context.Context, notes *notes)
}

// defaultTime is the time limit of a check that sets none.
const defaultTime = 15 * time.Second

// notes collects the findings of one check. notes is safe for concurrent use. Findings that arrive after the check's
// time limit are dropped.
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

// OK adds the finding that a part is in order. of names the part if there are several, and is "" for a single part.
func (n *notes) OK(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: OK, Seen: fmt.Sprintf(format, args...)})
}

// Skip adds the finding that a part was not checked, with the reason.
func (n *notes) Skip(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: Skipped, Seen: fmt.Sprintf(format, args...)})
}

// Warn adds a finding about a part that works but is dangerous or expensive.
func (n *notes) Warn(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Warning, Seen: seen, Change: change, Why: why})
}

// Fail adds a finding that keeps the service from starting or breaks a promise.
func (n *notes) Fail(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Failed, Seen: seen, Change: change, Why: why})
}

// take returns the findings; later findings are dropped.
func (n *notes) take() []Finding {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.list
}

// Report holds the findings of all checks, in the order of the checks.
type Report struct {
	Findings []Finding      `json:"findings"`
	Counts   map[result]int `json:"counts"`
}

// Run runs all checks in parallel, each with its time limit. Run returns when every check has ended or was abandoned.
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

// run runs one check and returns its findings. run abandons a check that does not return, for example on a hanging
// file system.
func (c *check) run(ctx context.Context) []Finding {
	within := cmp.Or(c.Within, defaultTime)
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

// grace is the time that a check has after its context has ended, to add its findings.
const grace = time.Second
