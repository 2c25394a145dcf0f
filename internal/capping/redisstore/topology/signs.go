package topology

import (
	"context"
	_ "embed"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
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

// Steps of sign.lua.
const (
	stepMark    = 1
	stepSign    = 2
	stepCondemn = 3
)

// sign is what sign.lua said of a partition.
type sign struct {
	partition int
	outcome   string
	by        time.Duration
	point     point
	kept      map[int]point // of other partitions
}

// good reports whether all that was recorded is there, as far as can be seen.
func (s *sign) good() bool { return s.outcome == "found" || s.outcome == "made" }

// bar is why the partition may not be believed, or nil.
func (s *sign) bar() *Bar {
	switch s.outcome {
	case "gone":
		return barGone
	case "dropped":
		return barDropped
	case "unmarked":
		return barUnmarked
	case "older":
		return barOlder(s.by)
	case "ahead":
		return barAhead(s.by)
	}
	return nil
}

// LookAtSigns looks at all signs and bars the partitions of which they say that records
// are lost. all is that every one could be looked at.
func (t *Topology) LookAtSigns(ctx context.Context, look Look) (all bool) {
	t.recalled.Do(func() { t.recall(ctx) })
	t.signLife.Store(look.Life.Milliseconds())
	usual := look
	usual.Accept = nil
	t.look.Store(&usual)
	return len(t.askSigns(ctx, &look, (*Node).lookAtSigns)) == len(t.signReads)
}

// CountSigns is how many partitions have a sign, of those that could be asked. It
// renews these for life, makes none and bars nothing.
func (t *Topology) CountSigns(ctx context.Context, life time.Duration) (have, asked int) {
	t.signLife.Store(life.Milliseconds())
	signs := t.askSigns(ctx, &Look{Life: life},
		func(n *Node, ctx context.Context, partitions []int, look *Look) []sign {
			found, _ := n.askSigns(ctx, partitions, look)
			return found
		})
	for _, sign := range signs {
		if sign.outcome != "gone" {
			have++
		}
	}
	return have, len(signs)
}

// Settled reports whether the loss of what the partition holds by now would be noticed
// although it held some of it earlier: a look at its sign has been there for a while.
func (t *Topology) Settled(partition int, since time.Time) bool {
	return t.points.settled(partition).at >= since.UnixMilli()
}

// SetSigned notes whether every sign has been made: from then on a missing one
// is one that was lost.
func (t *Topology) SetSigned(all bool) { t.signed.Store(all) }

// Signed reports whether every sign has been made.
func (t *Topology) Signed() bool { return t.signed.Load() }

// routed are the partitions that each node holds.
func (t *Topology) routed() map[*Node][]int {
	partitions := map[*Node][]int{}
	for p := range t.routes {
		if n := t.Route(p); n != nil {
			partitions[n] = append(partitions[n], p)
		}
	}
	return partitions
}

// partitions are those that the node holds.
func (n *Node) partitions() (held []int) {
	for p := range n.top.routes {
		if n.top.Route(p) == n {
			held = append(held, p)
		}
	}
	return held
}

// askSigns asks every node that can be reached for the signs of its partitions.
func (t *Topology) askSigns(
	ctx context.Context, look *Look, ask func(*Node, context.Context, []int, *Look) []sign,
) []sign {
	ctx, cancel := context.WithTimeout(ctx, t.config.LongestAttempt())
	defer cancel()
	var mu sync.Mutex
	var all []sign
	var asked sync.WaitGroup
	for n, list := range t.routed() {
		asked.Go(func() {
			found := ask(n, ctx, list, look)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
		})
	}
	asked.Wait()
	return all
}

// lookAtSigns looks at the signs of partitions that the node holds, and bars those of which
// they say that records are lost. The node is believed for these from then on, until it restarts.
func (n *Node) lookAtSigns(ctx context.Context, partitions []int, look *Look) []sign {
	n.looking.Lock()
	defer n.looking.Unlock()
	before := n.process.Load()
	if err := n.condemn(ctx, partitions, look); err != nil {
		return nil // it is not believed, and asked again
	}
	signs, seen := n.askSigns(ctx, partitions, look)
	for _, sign := range signs {
		n.top.judge(&sign)
	}
	if len(seen) > 0 && before == n.process.Load() {
		belief := &belief{n, before}
		for _, p := range seen {
			n.top.looked[p].Store(belief)
		}
	}
	return signs
}

// condemn writes down that partitions have lost records, where the server has started anew since they were looked
// at there, and its user default lacks rights. The marks show that only of what was there at a look since the
// append-only file was rewritten.
func (n *Node) condemn(ctx context.Context, partitions []int, look *Look) error {
	suspect := n.lookedAtBefore(partitions, look)
	if len(suspect) == 0 {
		return nil
	}
	lacking, err := n.top.rules.Loads(ctx, n.client)
	if fault.IsAuth(err) {
		return nil // nobody knows
	}
	if err != nil || len(lacking) == 0 {
		return err
	}
	n.MarkUnloaded() // scripts do not outlive a restart
	n.loadScripts(ctx)
	pipe := n.client.Pipeline()
	for _, p := range suspect {
		n.addSign(ctx, pipe, p, stepCondemn, look)
	}
	_, err = pipe.Exec(ctx)
	return err
}

// lookedAtBefore are the partitions that were looked at on the node in another run of the server, but for those
// that begin anew.
func (n *Node) lookedAtBefore(partitions []int, look *Look) (before []int) {
	now := n.process.Load()
	if now == nil || *now == "" {
		return nil
	}
	for _, p := range partitions {
		if looked := n.top.looked[p].Load(); looked != nil && looked.node == n && looked.run != now &&
			look.mode(p) < 2 {
			before = append(before, p)
		}
	}
	return before
}

// judge bars the partition, or no longer.
func (t *Topology) judge(s *sign) {
	next := s.bar()
	before := t.bars[s.partition].Swap(next)
	if next != nil && (before == nil || before.Reason != next.Reason) {
		t.config.Logger.Error("Redis store", "partition", s.partition, "error", next)
	}
}

// askSigns runs both steps of sign.lua for the partitions, and keeps how far they have come. seen are those
// that the node told of, and those that it is giving away.
func (n *Node) askSigns(ctx context.Context, partitions []int, look *Look) (found []sign, seen []int) {
	for range 2 {
		began, on := time.Now(), belief{n, n.process.Load()}
		replies, confirmed, missing := n.runSigns(ctx, partitions, look)
		confirmed = confirmed && on.run == n.process.Load()
		if missing {
			n.MarkUnloaded()
			n.loadScripts(ctx)
			continue
		}
		for i, p := range partitions {
			sign, ok := signOf(p, replies[i])
			if ok {
				n.top.remember(&sign, confirmed, on, began)
				found = append(found, sign)
			}
			if ok || leaving(replies[i].Err()) {
				seen = append(seen, p)
			}
		}
		break
	}
	return found, seen
}

// leaving reports whether the error is that the partition's keys are on their way to another node.
func leaving(err error) bool {
	switch fault.Of(err).Kind {
	case fault.Ask, fault.TryAgain:
		return true
	}
	return false
}

// remember keeps how far the partition has come, and others of which its mark tells.
func (t *Topology) remember(s *sign, confirmed bool, on belief, began time.Time) {
	for partition, p := range s.kept {
		if partition >= 0 && partition < len(t.routes) {
			t.points.told(partition, p)
		}
	}
	if s.good() && confirmed {
		t.points.reached(s.partition, s.point, on, began)
	}
}

// confirmSigns is how long replicas have to confirm signs: it holds up a look only.
const confirmSigns = 200 * time.Millisecond

// runSigns runs both steps of sign.lua for the partitions. confirmed is that as many replicas
// have them as a send needs, and missing that the node lacks the script.
func (n *Node) runSigns(
	ctx context.Context, partitions []int, look *Look,
) (replies []*redis.Cmd, confirmed, missing bool) {
	pipe := n.client.Pipeline()
	for _, p := range partitions {
		n.addSign(ctx, pipe, p, stepMark, look)
		replies = append(replies, n.addSign(ctx, pipe, p, stepSign, look))
	}
	confirmation, confirmed := n.askToConfirm(ctx, pipe)
	_, err := pipe.Exec(ctx) // every command holds its own error
	return replies, confirmed && confirmation.Judge() == nil, redis.HasErrorPrefix(err, "NOSCRIPT")
}

// askToConfirm adds the question who has the signs. False: too few replicas can have them.
func (n *Node) askToConfirm(ctx context.Context, pipe redis.Pipeliner) (*confirmation, bool) {
	if n.top.config.ReplicaAcks.None() {
		return nil, true
	}
	count, err := n.Replicas(ctx)
	if err != nil || n.degraded() {
		return nil, false
	}
	return n.AskReplicas(ctx, pipe, count, confirmSigns), true
}

func (n *Node) addSign(ctx context.Context, pipe redis.Pipeliner, p, step int, look *Look) *redis.Cmd {
	t := n.top
	known := t.points.settled(p)
	args := []any{step, look.mode(p), t.clockSlack().Milliseconds(), look.Life.Milliseconds(), known.anew, known.at}
	for _, other := range t.kept[p] {
		point := t.points.settled(other)
		args = append(args, other, point.anew, point.at)
	}
	return signScript.EvalSha(ctx, pipe, t.config.Partitions[p].signKeys(), args...)
}

var signScript = redis.NewScript(signSource)

// signOf reads a reply of sign.lua; false: it is an error, or another.
func signOf(partition int, cmd *redis.Cmd) (sign, bool) {
	reply, err := cmd.StringSlice()
	if err != nil || len(reply) < 4 || len(reply)%3 != 1 {
		return sign{}, false
	}
	numbers := make([]int64, len(reply)-1)
	for i, text := range reply[1:] {
		if numbers[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return sign{}, false
		}
	}
	s := sign{
		partition: partition, outcome: reply[0], by: time.Duration(numbers[0]) * time.Millisecond,
		point: point{numbers[1], numbers[2]}, kept: map[int]point{},
	}
	for rest := numbers[3:]; len(rest) > 0; rest = rest[3:] {
		s.kept[int(rest[0])] = point{rest[1], rest[2]}
	}
	return s, true
}

// clockSlack is by how much the clocks of a shard's servers may differ without
// a sign that one was ahead.
func (t *Topology) clockSlack() time.Duration { return max(2*t.config.ClockSkew, time.Second) }
