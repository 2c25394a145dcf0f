package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
)

const (
	beatEvery  = 5 * time.Second
	beatPause  = 50 * time.Millisecond // between beats that were asked for
	startPause = 10 * time.Millisecond // between the attempts of a start
	silentFor  = 6 * beatEvery         // after which an instance is no longer listed
	leastLife  = 30 * 24 * time.Hour   // of the records: so long may all instances be away
)

// run beats until close.
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
			pause(ctx, beatPause)
		}
	})
}

// pause waits so long, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (f *fleet) close() {
	f.cancel()
	f.wait.Wait()
	f.signOff()
}

// signOff takes this instance off the list at once, if it can: else it drops off.
func (f *fleet) signOff() {
	n := f.top.Route(f.keyspace.FormatPartition())
	if n == nil || f.seen.Load().fleet.Instances == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), min(f.config.AttemptTimeout, 500*time.Millisecond))
	defer cancel()
	_ = n.Client().HDel(ctx, f.marker.Key+":instances", f.id).Err()
}

// beat renews and looks at everything. What cannot be reached stays as it was:
// the topology says what is wrong with it.
func (f *fleet) beat(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.seen.Load()
	err := f.renew(ctx, lookOnly)
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
	f.told()
}

// missed is that beats have failed, since when and why.
type missed struct {
	since time.Time
	err   error
}

// tellMissed is for how long beats may fail before it is told: one or two do
// when a node fails over.
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

// silence is why the other instances do not hear of this one, or nil: it is not
// known of for how long they need sends, nor whether the records are still there.
func (f *fleet) silence() error {
	m := f.missed.Load()
	if m == nil || time.Since(m.since) < tellMissed {
		return nil
	}
	return fmt.Errorf("what instances share (keys %s:…) could not be renewed since %s: %w",
		f.marker.Key, m.since.UTC().Format(time.RFC3339), m.err)
}

// mode is what a beat may do.
type mode int

const (
	lookOnly   mode = iota // of an instance that runs
	adopt                  // of one that starts
	makeOrMend             // of one that starts and may begin anew
)

// renew runs beat.lua and keeps what it says.
func (f *fleet) renew(ctx context.Context, m mode) error {
	reply, err := f.runBeat(ctx, m)
	if err != nil {
		return err
	}
	switch next := (&sight{fleet: f.seen.Load().fleet}); reply[0] {
	case "format":
		f.markMismatched(reply[1])
	case "gone":
		next.gone = errGone
		f.seen.Store(next)
	case "channel":
		next.channel = channelError(reply[1:])
		f.seen.Store(next)
	default:
		return f.learn(reply)
	}
	return nil
}

func (f *fleet) learn(reply []string) error {
	longest, err := strconv.ParseInt(reply[1], 10, 64)
	if err != nil {
		return script.ErrReply
	}
	f.longest.Store(longest)
	f.top.SetSigned(reply[3] == "1")
	born, _ := strconv.ParseInt(reply[2], 10, 64)
	f.seen.Store(&sight{fleet: f.own.compare(reply[4:], time.UnixMilli(born)), made: reply[0] == "made"})
	if reply[0] != "found" {
		f.config.Logger.Warn("Redis store", "namespace", f.config.Namespace, "made", madeSentence[reply[0]])
	}
	return nil
}

var madeSentence = map[string]string{
	"made":    "a new store was made: nothing is recorded in it, so that every user may receive a message",
	"adopted": "the logs of an older version are taken over",
}

var errGone = fmt.Errorf("the store's records are gone, as after FLUSHALL: what was recorded is lost with them: " +
	"restart capper to begin anew with what is left (store.redis.create: true)")

func channelError(r []string) error {
	return fmt.Errorf("channels.%s: is %s here, but the sends that are stored have %s as %s: "+
		"a number is never given to another channel: take one that was never used for a new channel", r[0], r[1], r[2], r[3])
}

// runBeat runs beat.lua: this function alone knows its keys and arguments.
func (f *fleet) runBeat(ctx context.Context, m mode) ([]string, error) {
	n := f.top.Route(f.keyspace.FormatPartition())
	if n == nil {
		return nil, fault.ErrNoRoute
	}
	ctx, cancel := context.WithTimeout(ctx, f.top.LongestAttempt())
	defer cancel()
	text, err := json.Marshal(f.own.text)
	if err != nil {
		return nil, err
	}
	retention := max(f.own.retention.Milliseconds(), f.wanted.Load())
	args := []any{f.marker.Text, int(m), retention, f.id, text, silentFor.Milliseconds(), leastLife.Milliseconds()}
	for name, number := range f.own.channels {
		args = append(args, name, int(number))
	}
	base := f.marker.Key
	keys := []string{base, base + ":store", base + ":retentions", base + ":channels", base + ":instances"}
	reply, err := f.beatLua.Run(ctx, n.Client(), keys, args...).StringSlice()
	if err == nil && (len(reply) == 0 || len(reply) < 5 && reply[0] == "channel") {
		err = script.ErrReply
	}
	if err != nil {
		f.top.RefreshSoon()
		return nil, fmt.Errorf("node %s: %w", n.Addr(), err)
	}
	return reply, nil
}
