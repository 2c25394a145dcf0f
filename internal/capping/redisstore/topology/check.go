package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"capper/internal/capping/redisstore/topology/connect"
	"capper/internal/capping/redisstore/topology/examine"
)

// Discover finds out what the addresses are, that they belong together, and
// learns the routes. Addresses that do not answer are warned of.
func (t *Topology) Discover(ctx context.Context) (warnings []string, err error) {
	if t.config.SentinelMaster == "" {
		if warnings, err = t.findKind(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	if len(t.Masters()) == 0 {
		return nil, errors.New("redis: no node serves any slot: the cluster is down or was never created")
	}
	if t.cluster {
		err = t.findStrangers(ctx)
	}
	return warnings, err
}

// findKind asks every address whether it is a cluster's. All that answer have
// to agree, and one has to answer.
func (t *Topology) findKind(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.TripsOfAttempt*max(time.Second, t.config.AttemptTimeout)) // how far they are is not known
	defer cancel()
	enabled, faults := make([]string, len(t.config.Addrs)), make([]error, len(t.config.Addrs))
	t.ask(func(i int, n *Node) {
		text, err := n.client.Info(ctx, "cluster").Result()
		if err != nil {
			faults[i] = fmt.Errorf("redis %s: %w", n.addr, err)
			return
		}
		enabled[i] = cmp.Or(connect.ParseInfo(text)["cluster_enabled"], "0")
	})
	first := slices.IndexFunc(enabled, func(kind string) bool { return kind != "" })
	if first < 0 {
		return nil, errors.Join(faults...)
	}
	t.cluster = enabled[first] == "1"
	for i, kind := range enabled {
		switch {
		case kind == "":
			warnings = append(warnings, fmt.Sprintf("%v: only the other addresses are used", faults[i]))
		case kind != enabled[first]:
			return nil, fmt.Errorf("redis: %s and %s do not belong together: one is a cluster's node, the other is not",
				t.config.Addrs[first], t.config.Addrs[i])
		}
	}
	return warnings, nil
}

// findStrangers refuses addresses of another cluster: which of the two would
// be used is chance.
func (t *Topology) findStrangers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	faults := make([]error, len(t.config.Addrs))
	t.ask(func(i int, n *Node) {
		v, err := n.view(ctx)
		if err == nil && len(v.members) > 0 && !v.of(t.members) {
			faults[i] = fmt.Errorf("redis: %s and %s do not belong together: they are nodes of different clusters", t.Masters()[0].addr, n.addr)
		}
	})
	return errors.Join(faults...)
}

// ask asks all addresses of the configuration at once.
func (t *Topology) ask(question func(i int, n *Node)) {
	var asked sync.WaitGroup
	for i, addr := range t.config.Addrs {
		asked.Go(func() { question(i, t.node(addr)) })
	}
	asked.Wait()
}

// Check examines every master and its replicas for what would break a promise
// (an error) or only costs memory or cannot be seen (warnings).
func (t *Topology) Check(ctx context.Context) ([]string, error) {
	var f examine.Findings
	if t.config.ReplicaAcks.None() {
		f.Warn("replica_acks is 0: an allowed send is lost when its master is lost, and may then be sent again")
	}
	if n := t.unrouted(); n > 0 {
		f.Warn("%d of %d partitions are on slots that no node serves: their users are unavailable", n, len(t.routes))
	}
	var reached []*Node
	for _, n := range t.Masters() {
		var own examine.Findings
		if err := n.check(ctx, &own); err != nil {
			f.Warn("node %s: not checked: %v", n.addr, err)
			continue
		}
		n.noteFindings(&own)
		f.Add(own)
		reached = append(reached, n)
	}
	t.watchful = true
	if len(reached) == 0 {
		return nil, fmt.Errorf("redis: no master could be checked: %s", strings.Join(f.Warnings, "; "))
	}
	t.checkSuccessors(ctx, &f, reached)
	return f.Warnings, errors.Join(f.Refusals...)
}

func (n *Node) check(ctx context.Context, f *examine.Findings) error {
	usable, err := n.inspect(ctx, f)
	if err != nil || !usable {
		return err
	}
	return n.checkReplicas(ctx, f)
}

// inspect examines the rights of the store's user and the settings of a master.
// Without the rights nothing else can be asked.
func (n *Node) inspect(ctx context.Context, f *examine.Findings) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*n.top.attempt())
	defer cancel()
	t := n.top
	trial := t.trial("node "+n.addr, n)
	lacking, err := t.rules.Rights(ctx, n.client, trial)
	if err != nil {
		return false, err
	}
	if lacking != nil {
		f.Refusals = append(f.Refusals, lacking)
		return false, nil
	}
	return true, t.rules.Settings(ctx, n.client, f, trial.Who)
}

// trial is what rights are tried with: a key of a partition that the node
// holds. Nil: the server is not known to hold any.
func (t *Topology) trial(who string, n *Node) examine.Trial {
	trial := examine.Trial{Who: who, Key: t.config.Partitions[0].trialKey(), Cluster: t.cluster}
	for p := range t.config.Partitions {
		if n != nil && t.Route(p) == n {
			trial.Key, trial.Held = t.config.Partitions[p].trialKey(), true
			break
		}
	}
	return trial
}

func (n *Node) checkReplicas(ctx context.Context, f *examine.Findings) error {
	acks := n.top.config.ReplicaAcks
	if acks.None() {
		return nil
	}
	alive, all, err := n.replicas(ctx)
	if err != nil {
		return err
	}
	want := max(1, acks.fixed())
	switch {
	case all < want:
		loss := ""
		if all == 0 {
			loss = " and accept that sends are lost with a master"
		}
		f.Refuse("node %s: has %d replicas, replica_acks: %s needs %d: add replicas, or set replica_acks: %d%s", n.addr, all, acks, want, all, loss)
	case alive < want:
		f.Warn("node %s: %d of %d replicas work, replica_acks: %s needs %d: its users are unavailable until then", n.addr, alive, all, acks, want)
	case acks != Healthy && all > want:
		f.Warn("node %s: has %d replicas, replica_acks: %s waits for %d: a send is lost when a replica that lacks it is promoted; healthy waits for all that work",
			n.addr, all, acks, want)
	}
	return nil
}

// State is ok, degraded or down, and what the last refresh found wrong.
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
