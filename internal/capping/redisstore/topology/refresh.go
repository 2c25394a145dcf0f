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
	forgetAfter   = 60 // number of refreshes without the node after which its connections are closed
)

// Run refreshes the routes (which node holds which partition) again and again, until Close.
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

// logRefresh logs the result of a refresh only if it differs from the last logged one, because a failing refresh
// repeats many times a second.
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

// Pause waits for the duration d, or until the context ends if that is earlier.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Refreshes returns how many refreshes of the topology have ended in time. After a refresh that ended in time, each
// node has either replied or is known to be unreachable. If many dials to a server have failed, the Redis library
// repeats the last error for up to a second, even if the server is back.
func (t *Topology) Refreshes() int64 { return t.refreshes.Load() }

// RefreshSoon makes a refresh of the routes (which node holds which partition) start at once.
func (t *Topology) RefreshSoon() {
	select {
	case t.kick <- struct{}{}:
	default:
	}
}

// refresh updates the routes (which node holds which partition), and counts the replicas of all masters. The result
// "inTime" of refresh reports whether the asked servers replied in time.
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

// over reports whether the deadline of the context has passed. over also compares the time itself, because
// a read from a connection may end shortly before the context reports its deadline.
func over(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// budget returns how long each half of a refresh may take; the halves are the update of the routes (which node holds
// which partition), and the examination of masters.
func (t *Topology) budget() time.Duration {
	return t.farthest().Patience(refreshBudget, t.config.AttemptTimeout)
}

// attempt returns how long one request may take, whichever server it goes to.
func (t *Topology) attempt() time.Duration {
	return t.farthest().Patience(t.config.AttemptTimeout, t.config.AttemptTimeout)
}

// LongestAttempt returns how long one attempt may take at most, even on the most distant server.
func (t *Topology) LongestAttempt() time.Duration { return t.config.LongestAttempt() }

// farthest returns the estimated round-trip time of the node that is farthest away.
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

// examineMasters counts the replicas of every master, loads missing scripts and follows moving slots. examineMasters
// also records why users are unavailable. If the update of the routes (which node holds which partition) failed, the
// argument "refreshed" is the error; otherwise, it is nil.
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

// askNodes counts the replicas of every master, and returns the problems that it finds. askNodes also loads the Lua
// scripts into all other nodes, because other nodes may become masters.
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

// standing returns the known problems of the topology, except the problems that askNodes returns.
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
