package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A result is the result of one check of the environment, such as ok or failed.
type result string

// These constants are the results of checks of the environment, from the best to the worst. The result Skipped means
// that the check was not possible, or that the configuration does not use the component.
const (
	OK      result = "ok"
	Skipped result = "skipped"
	Warning result = "warning"
	Failed  result = "failed"
)

// A Finding is the result of a check for one component. For a problem, a Finding has the recommended change and the
// reason.
type Finding struct {
	Check  string `json:"check"`        // name of the check, such as segments.list or redis.nodes
	Of     string `json:"of,omitempty"` // the component, if the check covers several: a node, a file
	Result result `json:"result"`
	Seen   string `json:"seen"`             // the observed state
	Change string `json:"change,omitempty"` // recommended change; only for warnings and failures
	Why    string `json:"why,omitempty"`    // consequence without the change
}

// A check inspects one component of the environment, or several components of the same kind.
type check struct {
	Name string // letters and dots, beginning with the name of the group
	// Within is the time limit of the check; 0 means defaultTime. After the time limit, the doctor abandons the check
	// and reports it as failed.
	Within time.Duration
	// Look performs the check and adds its findings to notes. The doctor calls Look once, in a separate goroutine.
	Look func(ctx context.Context, notes *notes)
}

// defaultTime is the time limit of a check for which the field Within is 0.
const defaultTime = 15 * time.Second

// The type "notes" collects the findings of one check, and is safe for concurrent use. After the time limit of the
// check, the notes ignore further findings.
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

// OK adds the finding that a component is in order. The argument "of" names the component, or is "" if the check covers
// one component.
func (n *notes) OK(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: OK, Seen: fmt.Sprintf(format, args...)})
}

// The method Skip adds the finding that a component was not checked, with the reason.
func (n *notes) Skip(of, format string, args ...any) {
	n.add(Finding{Of: of, Result: Skipped, Seen: fmt.Sprintf(format, args...)})
}

// The method Warn adds a finding about a component that works but is dangerous or expensive.
func (n *notes) Warn(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Warning, Seen: seen, Change: change, Why: why})
}

// The method Fail adds a finding about a problem that prevents the start of the service or breaks one of its promises.
func (n *notes) Fail(of, seen, change, why string) {
	n.add(Finding{Of: of, Result: Failed, Seen: seen, Change: change, Why: why})
}

// The method take returns the findings of a check so far. After a call of take, the notes (collected findings) ignore
// further findings.
func (n *notes) take() []Finding {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
	return n.list
}

// A Report holds the findings of all checks of the environment, in the order of the checks.
type Report struct {
	Findings []Finding      `json:"findings"`
	Counts   map[result]int `json:"counts"`
}

// Run runs all checks in parallel, each with its own time limit. Run returns when each check has finished or has
// exceeded its time limit.
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

// The method run runs a check and returns its findings. The method run does not wait for a check that exceeds its time
// limit, for example because a file system does not respond.
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

// The constant grace is the time after the time limit in which a check can still add findings.
const grace = time.Second
