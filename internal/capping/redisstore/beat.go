package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

const (
	beatEvery  = 5 * time.Second
	beatPause  = 50 * time.Millisecond // minimum pause after a heartbeat
	startPause = 10 * time.Millisecond // pause between two attempts to read the shared records at start
	silentFor  = 6 * beatEvery         // an instance without a heartbeat for this long leaves the list of instances
	leastLife  = 30 * 24 * time.Hour   // minimum TTL of the shared records, even if all instances are down
)

// The method "run" sends a heartbeat to Redis every five seconds and on request, until the fleet is closed.
func (f *fleet) run() {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	f.wait.Go(func() {
		ticker := time.NewTicker(beatEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case <-f.top.Doubts():
			}
			f.beat(ctx)
			topology.Pause(ctx, beatPause)
		}
	})
}

func (f *fleet) close() {
	f.cancel()
	f.wait.Wait()
	f.signOff()
}

// signOff removes this instance from the list of instances that share the store. If signOff fails, the instance leaves
// the list after half a minute without a heartbeat.
func (f *fleet) signOff() {
	n := f.top.Route(f.keyspace.FormatPartition())
	if n == nil || f.seen.Load().fleet.Instances == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(f.config.AttemptTimeout, 500*time.Millisecond))
	defer cancel()
	_ = n.Client().HDel(ctx, f.marker.InstancesKey(), f.id).Err()
}

// The method "beat" sends one heartbeat, which renews the shared records of all instances in Redis. The method "beat"
// also checks the sentinel key (a marker key that reveals lost data) of every partition. If a server does not answer,
// the last known state of its partitions stays in force, and the topology reports the server's fault.
func (f *fleet) beat(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.seen.Load()
	err := f.renew(ctx, script.LookOnly)
	if ctx.Err() != nil {
		return
	}
	f.noteBeat(err)
	now := f.seen.Load()
	for _, err := range []error{now.gone, now.channel} {
		if err != nil && before.gone == nil && before.channel == nil {
			f.config.Logger.Error("Redis store", "error", err)
		}
	}
	f.lookAtSigns(ctx, nil)
	f.keepLedger(ctx)
	f.told()
}

// The type "missed" holds the start time of a series of failed heartbeats, and the error of the latest heartbeat.
type missed struct {
	since time.Time
	err   error
}

// tellMissed is the time after which the store reports failed heartbeats. A shorter time would report every failover,
// because one or two heartbeats fail in each failover.
const tellMissed = 3 * beatEvery

func (f *fleet) noteBeat(err error) {
	before := f.missed.Load()
	switch {
	case err == nil:
		f.missed.Store(nil)
	case before == nil:
		f.missed.Store(&missed{time.Now(), err})
	default:
		f.missed.Store(&missed{before.since, err})
		if now := time.Now(); now.Sub(before.since) > tellMissed && now.Sub(f.loggedAt) > time.Minute {
			f.loggedAt = now
			f.config.Logger.Error("Redis store", "error", f.silence())
		}
	}
}

// The method "silence" returns an error if the heartbeats of this instance have failed for a while, and otherwise nil.
// Without heartbeats, this instance does not know the retention that other instances need, or whether the shared
// records still exist.
func (f *fleet) silence() error {
	m := f.missed.Load()
	if m == nil || time.Since(m.since) < tellMissed {
		return nil
	}
	return fmt.Errorf("the records that capper instances share in Redis (keys %s:*) have not been renewed since %s: %w",
		f.marker.Key, m.since.UTC().Format(time.RFC3339), m.err)
}

// The method "renew" runs the script beat.lua and stores the script's reply.
func (f *fleet) renew(ctx context.Context, m script.Mode) error {
	began := time.Now()
	heard, err := f.runBeat(ctx, m)
	if err != nil {
		return err
	}
	switch next := (&sight{fleet: f.seen.Load().fleet}); heard.Outcome {
	case "format":
		if depth, ok := f.marker.OtherDepth(heard.Marker); ok && m != script.LookOnly {
			f.marker = f.useDepth(depth)
			return f.renew(ctx, m)
		}
		f.markMismatched(heard.Marker)
	case "gone":
		next.gone = errGone
		f.seen.Store(next)
	case "channel":
		next.channel = capping.ChannelConflict(heard.Channel[0], heard.Channel[1], heard.Channel[2],
			heard.Channel[3])
		f.seen.Store(next)
	default:
		f.learn(&heard, began)
	}
	return nil
}

func (f *fleet) learn(heard *script.Heard, began time.Time) {
	f.longest.Store(heard.Longest.Milliseconds())
	f.top.SetSigned(heard.Signed)
	f.seen.Store(&sight{
		fleet: f.own.compare(heard.Others, heard.Born), made: heard.Outcome == "made",
		adopted: heard.Outcome == "adopted",
		format:  heard.Format, othersAsOf: oldestAsOf(heard.Others), others: othersOf(heard.Others, began),
	})
	logger := f.config.Logger
	if heard.Outcome != "found" {
		logger.Warn("Redis store", "namespace", f.config.Namespace, "made", madeSentence[heard.Outcome])
	}
	if heard.Format > heard.Before {
		logger.Info("the stored format is newer now: older versions of capper reject the store",
			"before", heard.Before,
			"format", heard.Format)
	}
}

// olderFormat returns a warning if the store keeps an older format because an instance cannot read the newest format.
// If the store has the newest format, olderFormat returns "".
func (f *fleet) olderFormat() string {
	found, newest := f.seen.Load().format, f.marker.Newest()
	if found == 0 || found >= newest {
		return ""
	}
	return fmt.Sprintf("the store is in format %d until every instance reads format %d: upgrade the others", found,
		newest)
}

var madeSentence = map[string]string{
	"made":    "a new store was created without records, so every user may receive a message",
	"adopted": "the logs of an older version are being used",
	"mended":  "the records of the store were created again after an operator accepted a loss",
}

var errGone = fmt.Errorf(
	"the records of the store are gone from Redis (for example after FLUSHALL), so recorded sends are lost: " +
		"restart capper to create the store again from the remaining data " +
		"(store.redis.create: true)")

// runBeat calls the script beat.lua with a heartbeat, and returns the script's decoded reply.
func (f *fleet) runBeat(ctx context.Context, m script.Mode) (script.Heard, error) {
	n := f.top.Route(f.keyspace.FormatPartition())
	if n == nil {
		return script.Heard{}, fault.ErrNoRoute
	}
	ctx, cancel := context.WithTimeout(ctx, f.top.LongestAttempt())
	defer cancel()
	description := maps.Clone(f.own.text)
	// Other instances do not compare these entries with their own. beat.lua reads the entry "formats".
	description["formats"], description[restoresEntry] = f.marker.Formats(), "yes"
	if asOf := f.asOf.Load(); asOf != nil {
		description[asOfEntry] = asOfText(*asOf)
	}
	text, err := json.Marshal(description)
	if err != nil {
		return script.Heard{}, err
	}
	beat := script.Beat{
		Mode: m, Retention: max(f.own.retention.Milliseconds(), f.wanted.Load()), ID: f.id, Description: string(text),
		Silent: silentFor, Life: leastLife, Channels: f.own.channels,
	}
	reply, err := f.beatLua.Run(ctx, n.Client(), f.marker.Keys(), beat.Args(&f.marker)...).StringSlice()
	var heard script.Heard
	if err == nil {
		heard, err = script.DecodeBeat(reply)
	}
	if err != nil {
		f.top.RefreshSoon()
		return script.Heard{}, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return heard, nil
}

// restoresEntry is a key in the self-description that each instance sends with its heartbeats. An instance that sends
// this key also confirms each restoration of live changes (see liveLogs).
const restoresEntry = "restores"

// othersOf returns the other instances in the reply to a heartbeat. The argument "began" of othersOf is the start time
// of the heartbeat.
func othersOf(descriptions map[string]string, began time.Time) instances {
	found := instances{at: began}
	for id, description := range descriptions {
		var text map[string]string
		if json.Unmarshal([]byte(description), &text) == nil && text[restoresEntry] != "" {
			found.other = append(found.other, id)
		} else {
			found.older = true
		}
	}
	return found
}

// asOfEntry is a key in the self-description that each instance sends with its heartbeats. The value of this key holds
// the as-of time (time of export) of each set that the instance uses.
const asOfEntry = "as_of"

func asOfText(asOf map[string]capping.Instant) string {
	text, _ := json.Marshal(asOf) // never fails for a map of texts to numbers
	return string(text)
}

// oldestAsOf returns, for each set, the oldest as-of time (time of export) that another instance has reported. If an
// instance has reported no as-of times (times of export), oldestAsOf returns nil.
func oldestAsOf(others map[string]string) map[string]capping.Instant {
	oldest := map[string]capping.Instant{}
	for _, description := range others {
		var text map[string]string
		var asOf map[string]capping.Instant
		if json.Unmarshal([]byte(description), &text) != nil || json.Unmarshal([]byte(text[asOfEntry]), &asOf) != nil {
			return nil
		}
		for set, at := range asOf {
			if before, ok := oldest[set]; !ok || at < before {
				oldest[set] = at
			}
		}
	}
	return oldest
}
