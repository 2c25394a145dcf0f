package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// bar is why the users of a partition are unavailable though a node serves it:
// what it holds is not all that was recorded.
type bar struct {
	reason string // gone, clock or parted
	what   string // happened
	way    string // back for its users
}

func (b *bar) Error() string { return b.what + ": " + b.way }

var barGone = &bar{"gone", "the server was emptied, what was recorded there is lost",
	"the users are unavailable until " + restart}

// restart is the way back where history is lost for good.
const restart = "capper is restarted to begin anew with what is left (store.redis.create: true)"

func barAhead(by time.Duration) *bar {
	return &bar{"clock", fmt.Sprintf("the server's clock was ahead by %v, so that logs may have expired before their time", by.Round(time.Second)),
		"the users are unavailable until it is that late again, or " + restart}
}

// barred is why nobody of the partition is decided, or nil.
func (t *topology) barred(partition int) *bar {
	if b := t.bars[partition].Load(); b != nil {
		return b
	}
	return t.partedBar(partition)
}

// refusal is why the call is not sent, or nil.
func (t *topology) refusal(c *call) error {
	if c.node == nil {
		return errNoRoute
	}
	if b := t.barred(c.partition); b != nil {
		return b
	}
	return nil
}

// barredPartitions are those that are barred, by reason, that of the records
// left out, and what each reason says.
func (t *topology) barredPartitions() (counts map[string]int, whys map[string]*bar) {
	counts, whys = map[string]int{}, map[string]*bar{}
	for p := range t.layout.Partitions {
		if b := t.barred(p); b != nil {
			counts[b.reason]++
			whys[b.reason] = b
		}
	}
	return counts, whys
}

// signCommands are the commands that read each partition's sign.
func signCommands(prefixes []string, recordKey string) [][]any {
	var commands [][]any
	for _, prefix := range append(slices.Clone(prefixes), recordKey+":") {
		commands = append(commands, []any{"get", prefix + "-sign"}) // a dash is in no bucket's name
	}
	return commands
}

func (t *topology) signKey(partition int) string { return t.signs[partition][1].(string) }

// watch adds to a pipeline the question whether the sign of the last call's
// partition is still there: what was emptied before any of the calls shows.
func (n *node) watch(ctx context.Context, pipe redis.Pipeliner, calls []*call) *redis.Cmd {
	if !n.top.signed.Load() {
		return nil
	}
	sign := redis.NewCmd(ctx, n.top.signs[calls[len(calls)-1].partition]...)
	_ = pipe.Process(ctx, sign)
	return sign
}

// emptied reports whether the sign was missing. An error says nothing of it:
// the slot may have moved.
func (n *node) emptied(sign *redis.Cmd, calls []*call) bool {
	if sign == nil || !errors.Is(sign.Err(), redis.Nil) {
		return false
	}
	if n.top.bars[calls[len(calls)-1].partition].CompareAndSwap(nil, barGone) {
		n.top.config.Logger.Error("Redis store", "error", fmt.Errorf("node %s: %w", n.addr, barGone))
	}
	n.top.alarm()
	return true
}

// unreadable is why a sign may not be read, or nil: nobody knows then whether
// the server was emptied.
func unreadable(sign *redis.Cmd) error {
	if sign == nil {
		return nil
	}
	var reply redis.Error
	if err := sign.Err(); errors.As(err, &reply) && remedyOfReply(reply.Error()).kind == kindAuth {
		return fmt.Errorf("read the partition's sign: %w", err)
	}
	return nil
}

// signReply is what sign.lua said of a partition.
type signReply struct {
	partition int
	outcome   string
	ahead     time.Duration
}

// lookAtSigns looks at all signs and bars the partitions where one is missing
// or its server's clock was ahead. Until all signs have been made once, missing
// ones are made. accept: what a start found and its operator takes as it is.
func (f *fleet) lookAtSigns(ctx context.Context, accept map[int]bool) []signReply {
	t := f.store.top
	making := !t.signed.Load() && f.seen.Load().gone == nil
	found := t.askSigns(ctx, func(partition int) int {
		switch {
		case accept[partition]:
			return 2
		case making:
			return 1
		}
		return 0
	})
	for _, sign := range found {
		var next *bar
		switch sign.outcome {
		case "gone":
			next = barGone
		case "ahead":
			next = barAhead(sign.ahead)
		}
		before := t.bars[sign.partition].Swap(next)
		if next != nil && (before == nil || before.reason != next.reason) {
			f.store.config.Logger.Error("Redis store", "partition", sign.partition, "error", next)
		}
	}
	if making && len(found) == len(t.signs) {
		f.allSigned(ctx)
	}
	return found
}

// allSigned notes that every sign has been made: from now on a missing one is
// one that was lost.
func (f *fleet) allSigned(ctx context.Context) {
	s := f.store
	if n := s.top.route(s.layout.FormatPartition()); n != nil && n.client.HSet(ctx, s.marker.Key+":store", "signed", "1").Err() == nil {
		s.top.signed.Store(true)
	}
}

// askSigns runs sign.lua for every partition that can be reached.
func (t *topology) askSigns(ctx context.Context, mode func(partition int) int) []signReply {
	ctx, cancel := context.WithTimeout(ctx, t.config.longestAttempt())
	defer cancel()
	partitions := map[*node][]int{}
	for p := range t.signs {
		if n := t.route(p); n != nil {
			partitions[n] = append(partitions[n], p)
		}
	}
	var mu sync.Mutex
	var all []signReply
	var asked sync.WaitGroup
	for n, list := range partitions {
		asked.Go(func() {
			found := n.askSigns(ctx, list, mode)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
		})
	}
	asked.Wait()
	return all
}

func (n *node) askSigns(ctx context.Context, partitions []int, mode func(int) int) (found []signReply) {
	t := n.top
	life := max(leastLife, 2*time.Duration(t.longest.Load())*time.Millisecond)
	for range 2 {
		pipe := n.client.Pipeline()
		replies := make([]*redis.Cmd, len(partitions))
		for i, p := range partitions {
			replies[i] = pipe.EvalSha(ctx, t.scripts.sign.SHA, []string{t.signKey(p)}, mode(p), t.clockSlack().Milliseconds(), life.Milliseconds())
		}
		_, err := pipe.Exec(ctx) // every command holds its own error
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			n.loadScripts(ctx)
			continue
		}
		for i, p := range partitions {
			reply, err := replies[i].StringSlice()
			if err != nil || len(reply) == 0 {
				continue
			}
			sign := signReply{partition: p, outcome: reply[0]}
			if len(reply) > 1 {
				ms, _ := strconv.ParseInt(reply[1], 10, 64)
				sign.ahead = time.Duration(ms) * time.Millisecond
			}
			found = append(found, sign)
		}
		break
	}
	return found
}

// clockSlack is by how much the clocks of a shard's servers may differ without
// a sign that one was ahead.
func (t *topology) clockSlack() time.Duration { return max(2*t.config.ClockSkew, time.Second) }
