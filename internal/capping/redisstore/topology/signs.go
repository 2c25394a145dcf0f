package topology

import (
	"context"
	_ "embed"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed sign.lua
var signSource string

// Look is how to look at the signs.
type Look struct {
	Make   bool          // make those that are missing
	Accept map[int]bool  // partitions that begin anew with what is left
	Life   time.Duration // for which a sign lasts
}

// mode is what sign.lua may do with the partition's sign.
func (l *Look) mode(partition int) int {
	switch {
	case l.Accept[partition]:
		return 2
	case l.Make:
		return 1
	}
	return 0
}

// sign is what sign.lua said of a partition.
type sign struct {
	partition int
	outcome   string
	ahead     time.Duration
}

// bar is why the partition may not be believed, or nil.
func (s *sign) bar() *Bar {
	switch s.outcome {
	case "gone":
		return barGone
	case "ahead":
		return barAhead(s.ahead)
	}
	return nil
}

// LookAtSigns looks at all signs and bars the partitions where one is missing
// or its server's clock was ahead. all is that every one could be looked at.
func (t *Topology) LookAtSigns(ctx context.Context, look Look) (all bool) {
	signs := t.askSigns(ctx, &look)
	for _, sign := range signs {
		next := sign.bar()
		before := t.bars[sign.partition].Swap(next)
		if next != nil && (before == nil || before.Reason != next.Reason) {
			t.config.Logger.Error("Redis store", "partition", sign.partition, "error", next)
		}
	}
	return len(signs) == len(t.signReads)
}

// CountSigns is how many partitions have a sign, of those that could be asked. It
// renews these for life, makes none and bars nothing.
func (t *Topology) CountSigns(ctx context.Context, life time.Duration) (have, asked int) {
	signs := t.askSigns(ctx, &Look{Life: life})
	for _, sign := range signs {
		if sign.outcome != "gone" {
			have++
		}
	}
	return have, len(signs)
}

// SetSigned notes whether every sign has been made: from then on a missing one
// is one that was lost.
func (t *Topology) SetSigned(all bool) { t.signed.Store(all) }

// Signed reports whether every sign has been made.
func (t *Topology) Signed() bool { return t.signed.Load() }

// askSigns runs sign.lua for every partition that can be reached.
func (t *Topology) askSigns(ctx context.Context, look *Look) []sign {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	t.signLife.Store(look.Life.Milliseconds())
	partitions := map[*Node][]int{}
	for p := range t.signReads {
		if n := t.Route(p); n != nil {
			partitions[n] = append(partitions[n], p)
		}
	}
	var mu sync.Mutex
	var all []sign
	var asked sync.WaitGroup
	for n, list := range partitions {
		asked.Go(func() {
			found := n.askSigns(ctx, list, look)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
		})
	}
	asked.Wait()
	return all
}

func (n *Node) askSigns(ctx context.Context, partitions []int, look *Look) (found []sign) {
	for range 2 {
		replies, missing := n.runSigns(ctx, partitions, look)
		if missing {
			n.MarkUnloaded()
			n.loadScripts(ctx)
			continue
		}
		for i, p := range partitions {
			if sign, ok := signOf(p, replies[i]); ok {
				found = append(found, sign)
			}
		}
		break
	}
	return found
}

// runSigns runs sign.lua for the partitions. missing is that the node lacks it.
func (n *Node) runSigns(ctx context.Context, partitions []int, look *Look) (replies []*redis.Cmd, missing bool) {
	t, pipe := n.top, n.client.Pipeline()
	script := redis.NewScript(signSource)
	for _, p := range partitions {
		replies = append(replies, script.EvalSha(ctx, pipe, []string{t.config.Partitions[p].signKey()},
			look.mode(p), t.clockSlack().Milliseconds(), look.Life.Milliseconds()))
	}
	_, err := pipe.Exec(ctx) // every command holds its own error
	return replies, redis.HasErrorPrefix(err, "NOSCRIPT")
}

// signOf reads a reply of sign.lua; false: it is an error, or another.
func signOf(partition int, cmd *redis.Cmd) (sign, bool) {
	reply, err := cmd.StringSlice()
	if err != nil || len(reply) == 0 {
		return sign{}, false
	}
	s := sign{partition: partition, outcome: reply[0]}
	if len(reply) > 1 {
		ms, _ := strconv.ParseInt(reply[1], 10, 64)
		s.ahead = time.Duration(ms) * time.Millisecond
	}
	return s, true
}

// clockSlack is by how much the clocks of a shard's servers may differ without
// a sign that one was ahead.
func (t *Topology) clockSlack() time.Duration { return max(2*t.config.ClockSkew, time.Second) }
