package topology

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// The method "settings" checks the settings of one server (a master or a replica), and adds the findings to f. If the
// server did not answer, the method "settings" returns an error and adds nothing to f.
func (r *Rules) settings(ctx context.Context, client *redis.Client, f *Findings, who string) error {
	began := r.Clock()
	pipe := client.Pipeline()
	clock, info := pipe.Time(ctx), pipe.Info(ctx, "everything")
	entries, value := pipe.ConfigGet(ctx, "hash-max-*"), pipe.ConfigGet(ctx, "maxmemory-policy")
	coverage := pipe.ConfigGet(ctx, fullCoverage)
	fsync, role, loads := pipe.ConfigGet(ctx, "appendfsync"), pipe.Do(ctx, "role"), r.loading(ctx, pipe)
	if err := cmp.Or(Exec(ctx, pipe), clock.Err(), info.Err()); err != nil {
		return err
	}
	took := r.Clock().Sub(began)
	facts := ParseInfo(info.Val())
	if !r.ClockApart {
		r.checkClock(f, who, clock.Val().Sub(began), took)
	}
	checkEviction(f, who, facts, value)
	r.checkAppendOnly(f, who, facts, fsync.Val()["appendfsync"])
	r.checkLoading(f, who, facts, loads)
	r.checkEncoding(f, who, entries)
	checkCoverage(f, who, facts, coverage.Val()[fullCoverage])
	r.checkRole(f, who, role.Err())
	return nil
}

// checkRole warns the operator if the store's Redis user may not run the command ROLE. Without ROLE, the store knows
// only the number of replicas and not their addresses.
func (r *Rules) checkRole(f *Findings, who string, err error) {
	if !r.CountedReplicas || !fault.IsAuth(err) {
		return
	}
	lacks := fmt.Sprintf("the user %q may not run role", r.user())
	if fault.IsUnknown(err.Error()) {
		lacks = "does not know role"
	}
	f.Warn("%s: %s: a send allowed within one second after a replica returned is lost if that replica becomes the "+
		"master: add +role to the user's rights (deploy/redis.acl)",
		who, lacks)
}

// checkClock compares the clock of a server with the clock of this machine. The argument "off" of checkClock is the
// server's time minus the local time at the start of the request. The argument "took" of checkClock is the time from
// the request to the reply.
func (r *Rules) checkClock(f *Findings, who string, off, took time.Duration) {
	skew := r.ClockSkew
	switch {
	case skew > 0 && (off < -skew || off-took > skew):
		f.Refuse("%s: its clock differs from this machine's by %v, more than clock_skew %v: the server would reject "+
			"every call",
			who, off.Round(time.Millisecond), skew)
	case skew > 0 && took/2 > skew:
		f.Warn("%s: a response took %v: calls that take longer than clock_skew %v are rejected: raise it",
			who, took.Round(time.Millisecond), skew)
	case skew == 0 && (off < -time.Second || off-took > time.Second):
		f.Warn("%s: its clock differs from this machine's by %v, and clock_skew 0 disables the protection against it",
			who, off.Round(time.Millisecond))
	}
}

// Redis should use the compact encoding (listpack) for logs of up to listpackValue bytes. A log of 256 bytes holds 21
// sends.
const listpackValue = 256

func (r *Rules) checkEncoding(f *Findings, who string, config *redis.MapStringStringCmd) {
	checkSetting(f, who, config, "entries", r.HashFields)
	checkSetting(f, who, config, "value", listpackValue)
}

func checkSetting(f *Findings, who string, config *redis.MapStringStringCmd, which string, least int) {
	name := "hash-max-listpack-" + which
	text := config.Val()[name]
	if text == "" {
		name = "hash-max-ziplist-" + which // the name before Redis 7
		text = config.Val()[name]
	}
	got, err := strconv.Atoi(text)
	switch {
	case text == "" || err != nil:
		f.Warn("%s hides hash-max-listpack-%s: logs take several times the memory with less than %d%s", who, which,
			least, inGroup)
	case got < least:
		f.Warn("%s: %s is %d: logs take several times the memory with less than %d%s", who, name, got, least, inGroup)
	}
}

// inGroup is a hint for managed Redis services, whose settings can be changed only in a parameter group.
const inGroup = " (of a managed service: in the node's parameter group)"

func checkEviction(f *Findings, who string, info Facts, config *redis.MapStringStringCmd) {
	policy := info["maxmemory_policy"]
	if policy == "" {
		policy = config.Val()["maxmemory-policy"]
	}
	switch policy {
	case "noeviction":
	case "":
		f.Warn("%s hides its maxmemory-policy: make sure that it is noeviction%s", who, inGroup)
	default:
		f.Refuse("%s: maxmemory-policy is %s, which silently deletes recorded sends: set it to noeviction%s",
			who, policy, inGroup)
	}
}

func (r *Rules) checkAppendOnly(f *Findings, who string, info Facts, fsync string) {
	none := r.Unreplicated
	switch on := info["aof_enabled"]; {
	case on == "1" && fsync == "no":
		f.Warn("%s: appendfsync is no: a restart may lose many seconds of sends: set it to everysec or always", who)
	case on == "1":
	case info["loading"] == "1": // aof_enabled is 0 while the server loads its data, so the server is examined later
	case r.WithoutAppendOnly && !none:
		f.Warn("%s: appendonly is off, as allow_no_append_only permits: a restarted master would have no data and "+
			"delete the data of its replicas, so always replace a lost node", who)
	case none && on == "0":
		f.Warn("%s: appendonly is no: a restart loses every send since the last snapshot", who)
	case none:
	case on == "":
		f.Warn("%s hides whether its append-only file is on: without it, a restarted master would empty its replicas",
			who)
	default:
		f.Refuse("%s: appendonly is no: a restarted master would have no data and delete the data of its replicas: "+
			"set appendonly yes%s, or allow_no_append_only: true if lost nodes are replaced and never restart empty",
			who, inGroup)
	}
}

// fullCoverage is the name of a setting of Redis Cluster. If the setting is on, which is the default, the whole cluster
// stops while any hash slot has no master.
const fullCoverage = "cluster-require-full-coverage"

func checkCoverage(f *Findings, who string, info Facts, value string) {
	switch {
	case info["cluster_enabled"] != "1" || value == "no":
	case value == "":
		f.Warn("%s hides %s: make sure that it is no%s", who, fullCoverage, inGroup)
	default:
		f.Warn("%s: %s is %s: while one shard has no master, the users of all shards are unavailable: set it to no%s",
			who, fullCoverage, value, inGroup)
	}
}
