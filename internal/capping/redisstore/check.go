package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// discover finds out what the addresses are and learns the routes.
func (t *topology) discover(ctx context.Context) error {
	if t.config.SentinelMaster == "" {
		cluster, err := t.isCluster(ctx)
		if err != nil {
			return err
		}
		t.cluster = cluster
	}
	if err := t.refresh(ctx); err != nil {
		return err
	}
	if len(t.masters()) == 0 {
		return errors.New("redis: no node serves any slot: the cluster is down or was never created")
	}
	return nil
}

// isCluster asks one address after the other until one answers.
func (t *topology) isCluster(ctx context.Context) (bool, error) {
	var faults []error
	for _, addr := range t.config.Addrs {
		text, err := t.node(addr).client.Info(ctx, "cluster").Result()
		if err == nil {
			return parseInfo(text)["cluster_enabled"] == "1", nil
		}
		faults = append(faults, fmt.Errorf("redis %s: %w", addr, err))
	}
	return false, errors.Join(faults...)
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
		if err := n.check(ctx, &f); err != nil {
			f.warn("node %s: not checked: %v", n.addr, err)
			continue
		}
		n.vetted.Store(true)
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
	if err := n.top.inspect(ctx, n.client, f, "node "+n.addr); err != nil {
		return err
	}
	return n.checkReplicas(ctx, f)
}

// inspect examines who, a server, be it a master or one that may become it.
func (t *topology) inspect(ctx context.Context, client *redis.Client, f *findings, who string) error {
	began := t.config.Clock()
	pipe := client.Pipeline()
	clock, info := pipe.Time(ctx), pipe.Info(ctx, "everything")
	entries, value := pipe.ConfigGet(ctx, "hash-max-*"), pipe.ConfigGet(ctx, "maxmemory-policy")
	_, _ = pipe.Exec(ctx) // every command holds its own error
	if err := errors.Join(clock.Err(), info.Err()); err != nil {
		return err
	}
	took := t.config.Clock().Sub(began)
	facts := parseInfo(info.Val())
	t.checkClock(f, who, clock.Val().Sub(began), took)
	checkEviction(f, who, facts, value)
	t.checkAppendOnly(f, who, facts)
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
	case skew == 0 && (off < -time.Second || off-took > time.Second):
		f.warn("%s: its clock differs from this machine's by %v, and clock_skew is 0, so nothing guards against it",
			who, off.Round(time.Millisecond))
	}
}

// listpackValue is the length of logs up to which buckets should stay compact:
// 21 sends.
const listpackValue = 256

func (t *topology) checkEncoding(f *findings, who string, config *redis.MapStringStringCmd) {
	checkSetting(f, who, config, "entries", int(t.layout.bucketSize)+1)
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
		f.warn("%s: hides hash-max-listpack-%s: with less than %d logs take several times the memory", who, which, least)
	case got < least:
		f.warn("%s: %s is %d: with less than %d logs take several times the memory", who, name, got, least)
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
		f.refuse("node %s: has %d replicas, replica_acks: %s needs %d: add replicas, or set replica_acks: %d and accept that sends are lost with a master",
			n.addr, all, acks, want, all)
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
