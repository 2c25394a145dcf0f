package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// discover finds out what the addresses are, that they belong together, and
// learns the routes. Addresses that do not answer are warned of.
func (t *topology) discover(ctx context.Context) (warnings []string, err error) {
	if t.config.SentinelMaster == "" {
		if warnings, err = t.findKind(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.refresh(ctx); err != nil {
		return nil, err
	}
	if len(t.masters()) == 0 {
		return nil, errors.New("redis: no node serves any slot: the cluster is down or was never created")
	}
	if t.cluster {
		err = t.findStrangers(ctx)
	}
	return warnings, err
}

// findKind asks every address whether it is a cluster's. All that answer have
// to agree, and one has to answer.
func (t *topology) findKind(ctx context.Context) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tripsOfAttempt*max(time.Second, t.config.AttemptTimeout)) // how far they are is not known
	defer cancel()
	enabled, faults := make([]string, len(t.config.Addrs)), make([]error, len(t.config.Addrs))
	t.ask(func(i int, n *node) {
		text, err := n.client.Info(ctx, "cluster").Result()
		if err != nil {
			faults[i] = fmt.Errorf("redis %s: %w", n.addr, err)
			return
		}
		enabled[i] = cmp.Or(parseInfo(text)["cluster_enabled"], "0")
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
func (t *topology) findStrangers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	faults := make([]error, len(t.config.Addrs))
	t.ask(func(i int, n *node) {
		v, err := n.view(ctx)
		if err == nil && len(v.members) > 0 && !v.of(t.members) {
			faults[i] = fmt.Errorf("redis: %s and %s do not belong together: they are nodes of different clusters", t.masters()[0].addr, n.addr)
		}
	})
	return errors.Join(faults...)
}

// ask asks all addresses of the configuration at once.
func (t *topology) ask(question func(i int, n *node)) {
	var asked sync.WaitGroup
	for i, addr := range t.config.Addrs {
		asked.Go(func() { question(i, t.node(addr)) })
	}
	asked.Wait()
}

// findings are what the start-up checks say.
type findings struct {
	refusals []error
	warnings []string
}

func (f *findings) refuse(format string, args ...any) {
	f.refusals = append(f.refusals, fmt.Errorf(format, args...))
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

func (f *findings) add(more findings) {
	f.refusals = append(f.refusals, more.refusals...)
	f.warnings = append(f.warnings, more.warnings...)
}

// check examines every master and its replicas for what would break a promise
// (an error) or only costs memory or cannot be seen (warnings).
func (t *topology) check(ctx context.Context) ([]string, error) {
	var f findings
	if t.config.ReplicaAcks.none() {
		f.warn("replica_acks is 0: an allowed send is lost when its master is lost, and may then be sent again")
	}
	if n := t.unrouted(); n > 0 {
		f.warn("%d of %d partitions are on slots that no node serves: their users are unavailable", n, len(t.routes))
	}
	var reached []*node
	for _, n := range t.masters() {
		var own findings
		if err := n.check(ctx, &own); err != nil {
			f.warn("node %s: not checked: %v", n.addr, err)
			continue
		}
		n.found(&own)
		f.add(own)
		reached = append(reached, n)
	}
	t.watchful = true
	if len(reached) == 0 {
		return nil, fmt.Errorf("redis: no master could be checked: %s", strings.Join(f.warnings, "; "))
	}
	t.checkSuccessors(ctx, &f, reached)
	return f.warnings, errors.Join(f.refusals...)
}

func (n *node) check(ctx context.Context, f *findings) error {
	usable, err := n.inspect(ctx, f)
	if err != nil || !usable {
		return err
	}
	return n.checkReplicas(ctx, f)
}

// inspect examines the rights of the store's user and the settings of a master.
// Without the rights nothing else can be asked.
func (n *node) inspect(ctx context.Context, f *findings) (usable bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*n.top.attempt())
	defer cancel()
	who := "node " + n.addr
	key, held := n.trialKey()
	lacking, err := n.top.lackingRights(ctx, n.client, who, key, held)
	if err != nil {
		return false, err
	}
	if lacking != nil {
		f.refusals = append(f.refusals, lacking)
		return false, nil
	}
	return true, n.top.inspect(ctx, n.client, f, who)
}

// inspect examines the settings of who, a server, be it a master or one that
// may become it.
func (t *topology) inspect(ctx context.Context, client *redis.Client, f *findings, who string) error {
	began := t.config.Clock()
	pipe := client.Pipeline()
	clock, info := pipe.Time(ctx), pipe.Info(ctx, "everything")
	entries, value := pipe.ConfigGet(ctx, "hash-max-*"), pipe.ConfigGet(ctx, "maxmemory-policy")
	fsync := pipe.ConfigGet(ctx, "appendfsync")
	if err := cmp.Or(execute(ctx, pipe), clock.Err(), info.Err()); err != nil {
		return err
	}
	took := t.config.Clock().Sub(began)
	facts := parseInfo(info.Val())
	t.checkClock(f, who, clock.Val().Sub(began), took)
	checkEviction(f, who, facts, value)
	t.checkAppendOnly(f, who, facts, fsync.Val()["appendfsync"])
	t.checkEncoding(f, who, entries)
	return nil
}

// checkClock compares the server's clock with ours: off is the server's less
// ours of before the question, which took so long.
func (t *topology) checkClock(f *findings, who string, off, took time.Duration) {
	skew := t.config.ClockSkew
	switch {
	case skew > 0 && (off < -skew || off-took > skew):
		f.refuse("%s: its clock differs from this machine's by %v, more than clock_skew %v: every call would be refused",
			who, off.Round(time.Millisecond), skew)
	case skew > 0 && took/2 > skew:
		f.warn("%s: an answer took %v: calls that are on their way for longer than clock_skew %v are refused: raise it",
			who, took.Round(time.Millisecond), skew)
	case skew == 0 && (off < -time.Second || off-took > time.Second):
		f.warn("%s: its clock differs from this machine's by %v, and clock_skew is 0, so nothing guards against it",
			who, off.Round(time.Millisecond))
	}
}

// listpackValue is the length of logs up to which buckets should stay compact:
// 21 sends.
const listpackValue = 256

func (t *topology) checkEncoding(f *findings, who string, config *redis.MapStringStringCmd) {
	checkSetting(f, who, config, "entries", int(t.layout.BucketSize)+1)
	checkSetting(f, who, config, "value", listpackValue)
}

func checkSetting(f *findings, who string, config *redis.MapStringStringCmd, which string, least int) {
	name := "hash-max-listpack-" + which
	text := config.Val()[name]
	if text == "" {
		name = "hash-max-ziplist-" + which // before Redis 7
		text = config.Val()[name]
	}
	got, err := strconv.Atoi(text)
	switch {
	case text == "" || err != nil:
		f.warn("%s: hides hash-max-listpack-%s: with less than %d logs take several times the memory%s", who, which, least, inGroup)
	case got < least:
		f.warn("%s: %s is %d: with less than %d logs take several times the memory%s", who, name, got, least, inGroup)
	}
}

func (n *node) checkReplicas(ctx context.Context, f *findings) error {
	acks := n.top.config.ReplicaAcks
	if acks.none() {
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
		f.refuse("node %s: has %d replicas, replica_acks: %s needs %d: add replicas, or set replica_acks: %d%s", n.addr, all, acks, want, all, loss)
	case alive < want:
		f.warn("node %s: %d of %d replicas work, replica_acks: %s needs %d: its users are unavailable until then", n.addr, alive, all, acks, want)
	case acks != Healthy && all > want:
		f.warn("node %s: has %d replicas, replica_acks: %s waits for %d: a send is lost when a replica that lacks it is promoted; healthy waits for all that work",
			n.addr, all, acks, want)
	}
	return nil
}

// state is the store's state for Health.
func (t *topology) state() (state, problem string) {
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
