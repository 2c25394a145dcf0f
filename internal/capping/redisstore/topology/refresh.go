package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	refreshEvery  = time.Second
	refreshPause  = 50 * time.Millisecond // pause between two requested refreshes
	refreshBudget = 500 * time.Millisecond
	logPause      = 5 * time.Second
	forgetAfter   = 60 // connections to a node are closed after this number of refreshes without the node
)

// The method Run refreshes the routes (the node of each partition) every second and on request, until Close.
func (t *Topology) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	if t.config.TLS != nil {
		t.wait.Go(func() { t.watchCertificates(ctx) })
	}
	t.wait.Add(1)
	go func() {
		defer t.wait.Done()
		ticker := time.NewTicker(refreshEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-t.kick:
			}
			if _, err := t.refresh(ctx); ctx.Err() == nil {
				t.logRefresh(err)
			}
			Pause(ctx, refreshPause)
		}
	}()
}

// logRefresh logs the result of a refresh only if the result differs from the last logged result, because failing
// refreshes repeat many times a second.
func (t *Topology) logRefresh(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch {
	case text == t.logged:
	case err == nil:
		t.config.Logger.Info("the Redis topology is known again")
	case time.Since(t.loggedAt) > logPause: // the text of a time-out error is different each time
		t.config.Logger.Warn("refresh of the Redis topology failed", "error", err)
		t.loggedAt = time.Now()
	default:
		return
	}
	t.logged = text
}

// The function Pause waits for the duration d, or until the context ends if that is earlier.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// The method Refreshes returns the number of refreshes of the topology that have ended in time. In each counted
// refresh, every node either replied or was unreachable. After many failed dials to a server, the Redis library repeats
// the last error for up to a second, even if the server is back.
func (t *Topology) Refreshes() int64 { return t.refreshes.Load() }

// RefreshSoon requests an immediate refresh of the routes (the node of each partition).
func (t *Topology) RefreshSoon() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// The method "refresh" updates the routes (the node of each partition), and examines all masters. The result "inTime"
// of the method "refresh" is true if the update of the routes ended in time.
func (t *Topology) refresh(ctx context.Context) (inTime bool, err error) {
	inTime, err = t.relearn(ctx)
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	t.examineMasters(ctx, err)
	if inTime && !over(ctx) {
		t.refreshes.Add(1)
	}
	return inTime, err
}

// The function "over" reports whether the deadline of the context has passed. Besides the context, "over" checks the
// clock, because a read from a connection may end shortly before the context reports the deadline.
func over(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// A refresh has two halves: the update of the routes (the node of each partition), and the examination of masters. The
// method "budget" returns the time limit of each half.
func (t *Topology) budget() time.Duration {
	return t.farthest().Patience(refreshBudget, t.config.AttemptTimeout)
}

// The method "attempt" returns a time limit for one request that is long enough for every server.
func (t *Topology) attempt() time.Duration {
	return t.farthest().Patience(t.config.AttemptTimeout, t.config.AttemptTimeout)
}

// LongestAttempt returns the longest time limit of one attempt, for the most distant server that capper supports.
func (t *Topology) LongestAttempt() time.Duration { return t.config.LongestAttempt() }

// The method "farthest" returns the round trips of the node with the longest estimated round trip.
func (t *Topology) farthest() *RoundTrips {
	farthest := &RoundTrips{}
	for _, n := range t.Nodes() {
		if n.trips.Time() > farthest.Time() {
			farthest = &n.trips
		}
	}
	return farthest
}

func (t *Topology) relearn(ctx context.Context) (inTime bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	if t.cluster {
		err = t.refreshCluster(ctx)
	} else {
		err = t.refreshServers(ctx)
	}
	return !over(ctx), err
}

// examineMasters counts the replicas of every master, loads missing scripts and follows moving slots. The method
// examineMasters also records the problems that make users unavailable. The argument "refreshed" of examineMasters is
// the error of the update of the routes (the node of each partition), or nil.
func (t *Topology) examineMasters(ctx context.Context, refreshed error) {
	masters := t.Masters()
	problems := t.askNodes(ctx, masters)
	t.followMoves(ctx, masters)
	t.logTorn()
	t.publishWarnings()
	down := len(problems) == len(masters)
	problems = append(problems, t.standing(masters, refreshed)...)
	slices.Sort(problems)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems, t.down = problems, down
}

// askNodes counts the replicas of every master, and returns the found problems. The method askNodes also loads missing
// Lua scripts into all nodes, because every node may become a master.
func (t *Topology) askNodes(ctx context.Context, masters []*Node) (problems []string) {
	var mu sync.Mutex
	var asked sync.WaitGroup
	for _, n := range masters {
		asked.Go(func() {
			if problem := n.lookAtReplicas(ctx); problem != "" {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, problem)
			}
		})
	}
	for _, n := range t.Nodes() {
		if !slices.Contains(masters, n) {
			n.vetted.Store(0) // settings and replicas may change before the node is a master again
			n.count.Store(nil)
			n.lacks.Store(nil)
			n.forgetLooks()
			n.standing.Store(nil)
		}
		if !n.scripts.Load() {
			asked.Go(func() { n.loadScripts(ctx) })
		}
	}
	asked.Wait()
	return problems
}

// The method "standing" returns the known problems of the topology, except the problems that askNodes returns.
func (t *Topology) standing(masters []*Node, refreshed error) (problems []string) {
	for _, n := range masters {
		if n.breach != "" {
			problems = append(problems, n.breach)
		}
	}
	if refreshed != nil {
		problems = append(problems, refreshed.Error())
	}
	for _, err := range t.strangers {
		if !errors.Is(refreshed, err) {
			problems = append(problems, err.Error())
		}
	}
	if t.failing {
		problems = append(problems, "cluster_state is fail on every node: all users are unavailable; capper doctor "+
			"shows the reason: with cluster-require-full-coverage yes, one shard without a master is enough")
	}
	if n := t.Unserved(); n > 0 {
		problems = append(problems, fmt.Sprintf("%d of %d partitions are on slots that no node serves", n,
			len(t.routes)))
	}
	return problems
}

// State returns the state of the topology ("ok", "degraded" or "down"), and the problems that the last refresh found.
func (t *Topology) State() (state, problem string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.problems) == 0:
		return "ok", ""
	case t.down:
		state = "down"
	default:
		state = "degraded"
	}
	return state, strings.Join(t.problems, "; ")
}
