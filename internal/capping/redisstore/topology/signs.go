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

// The type Look holds the options of a check of the partitions' sentinel keys (marker keys that reveal lost data).
type Look struct {
	Make   bool          // create missing sentinel keys
	Accept map[int]bool  // partitions that continue with incomplete records
	Life   time.Duration // TTL of a sentinel key
}

// The method "mode" returns the mode of sign.lua for the partition. Mode 0 checks and renews the sentinel key (marker
// key that reveals lost data). Mode 1 of sign.lua also creates missing keys. Mode 2 of sign.lua also accepts a loss of
// records, so that the partition continues with the remaining records.
func (l *Look) mode(partition int) int {
	switch {
	case l.Accept[partition]:
		return 2
	case l.Make:
		return 1
	}
	return 0
}

// stepMark, stepSign and stepCondemn are the steps of sign.lua, the script that checks the sentinel keys (marker keys
// that reveal lost data) of partitions.
const (
	stepMark    = 1
	stepSign    = 2
	stepCondemn = 3
)

// A sign is the reply of sign.lua for one partition, with the result of the check. The script checks the sentinel key
// (marker key that reveals lost data) and the mark (hash with the same time).
type sign struct {
	partition int
	outcome   string
	by        time.Duration
	point     point
	kept      map[int]point // points of other partitions, by partition
}

// The method "good" reports whether the partition has lost no records, according to the reply.
func (s *sign) good() bool { return s.outcome == "found" || s.outcome == "made" }

// The method "bar" returns the quarantine (no decisions until an operator accepts the loss) that the reply of sign.lua
// requires for the partition, or nil.
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

// LookAtSigns checks the sentinel keys (marker keys that reveal lost data) of all partitions. LookAtSigns puts
// partitions that have lost records into quarantine (no decisions until an operator accepts the loss). The result "all"
// of LookAtSigns is true if every sentinel key was checked.
func (t *Topology) LookAtSigns(ctx context.Context, look Look) (all bool) {
	t.recalled.Do(func() { t.recall(ctx) })
	t.signLife.Store(look.Life.Milliseconds())
	usual := look
	usual.Accept = nil
	t.look.Store(&usual)
	return len(t.askSigns(ctx, &look, (*Node).lookAtSigns)) == len(t.signReads)
}

// CountSigns returns the number of partitions with a sentinel key (a marker key that reveals lost data), and the number
// of partitions whose server replied. CountSigns sets the TTL of existing sentinel keys to the duration "life".
// CountSigns creates no sentinel keys and puts no partition into quarantine (no decisions until an operator accepts the
// loss).
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

// The method Settled reports whether the store would notice a loss of the partition's records from the time "since".
// The store would notice the loss if the settled point (a time that the partition has certainly reached) is not earlier
// than "since".
func (t *Topology) Settled(partition int, since time.Time) bool {
	return t.points.settled(partition).at >= since.UnixMilli()
}

// SetSigned records whether each partition already has its sentinel key (a marker key that reveals lost data). After
// all partitions have got a sentinel key, a missing key means that a server has lost it.
func (t *Topology) SetSigned(all bool) { t.signed.Store(all) }

// The method Signed reports whether each partition already has its sentinel key (a marker key that reveals lost data).
func (t *Topology) Signed() bool { return t.signed.Load() }

// The method "routed" returns the partitions of each Redis node.
func (t *Topology) routed() map[*Node][]int {
	partitions := map[*Node][]int{}
	for p := range t.routes {
		if n := t.Route(p); n != nil {
			partitions[n] = append(partitions[n], p)
		}
	}
	return partitions
}

// The method "partitions" returns the numbers of the partitions that this node holds.
func (n *Node) partitions() (held []int) {
	for p := range n.top.routes {
		if n.top.Route(p) == n {
			held = append(held, p)
		}
	}
	return held
}

// askSigns checks the sentinel keys (marker keys that reveal lost data) of all partitions and returns the replies. The
// method askSigns asks all nodes in parallel.
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

// lookAtSigns checks the sentinel keys (marker keys that reveal lost data) of some partitions on the node. The method
// lookAtSigns puts partitions that have lost records into quarantine (no decisions until an operator accepts the loss).
// After lookAtSigns, the store accepts replies of the node for the checked partitions until the node's server restarts.
func (n *Node) lookAtSigns(ctx context.Context, partitions []int, look *Look) []sign {
	n.looking.Lock()
	defer n.looking.Unlock()
	before := n.process.Load()
	if err := n.condemn(ctx, partitions, look); err != nil {
		return nil // the node's replies are not trusted, and the check is repeated
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

// The method "condemn" records a loss in a partition if the server has restarted since the partition's last check, and
// if the server's user "default" lacks rights. If the server's user "default" lacks rights, the server may drop records
// while it loads its append-only file. The marks of partitions do not show every loss of records. A mark shows the loss
// of a record only if the record was written between the last rewrite of the append-only file and a check of the
// partition.
func (n *Node) condemn(ctx context.Context, partitions []int, look *Look) error {
	suspect := n.lookedAtBefore(partitions, look)
	if len(suspect) == 0 {
		return nil
	}
	lacking, err := n.top.rules.Loads(ctx, n.client)
	if fault.IsAuth(err) {
		return nil // the rights are not known
	}
	if err != nil || len(lacking) == 0 {
		return err
	}
	n.MarkUnloaded() // a restart removes the loaded scripts
	n.loadScripts(ctx)
	pipe := n.client.Pipeline()
	for _, p := range suspect {
		n.addSign(ctx, pipe, p, stepCondemn, look)
	}
	_, err = pipe.Exec(ctx)
	return err
}

// lookedAtBefore returns the partitions whose sentinel key (a marker key that reveals lost data) was last checked in an
// earlier run of the server. The method lookedAtBefore omits partitions whose loss of data was accepted.
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

// The method "judge" starts or ends the quarantine (no decisions until an operator accepts the loss) of a partition, as
// the reply of sign.lua requires.
func (t *Topology) judge(s *sign) {
	next := s.bar()
	before := t.bars[s.partition].Swap(next)
	if next != nil && (before == nil || before.Reason != next.Reason) {
		t.config.Logger.Error("Redis store", "partition", s.partition, "error", next)
	}
}

// askSigns runs both steps of sign.lua for the partitions on the node, and stores the latest time of each partition.
// The result "seen" of askSigns lists the partitions for which the node replied, and the partitions whose slot is
// moving to another node.
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

// The function "leaving" reports whether an error says that the keys of the partition are moving to another node.
func leaving(err error) bool {
	switch fault.Of(err).Kind {
	case fault.Ask, fault.TryAgain:
		return true
	}
	return false
}

// The method "remember" copies the points (latest times) of other partitions from the partition's mark, a Redis hash,
// into memory. The method "remember" also records the partition's own point (latest time), if the partition lost no
// records and enough replicas confirmed the check.
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

// confirmSigns is the time limit for replicas to confirm the writes of sentinel keys (marker keys that reveal lost
// data). If replicas need longer than this time limit, the store only repeats the check of sentinel keys later.
const confirmSigns = 200 * time.Millisecond

// runSigns runs both steps of sign.lua for the partitions, in a single pipeline. The result "confirmed" of runSigns is
// true if enough replicas (as many as for a send) have confirmed the sentinel keys and marks. If the node does not have
// the script sign.lua, the result "missing" is true.
func (n *Node) runSigns(
	ctx context.Context, partitions []int, look *Look,
) (replies []*redis.Cmd, confirmed, missing bool) {
	pipe := n.client.Pipeline()
	for _, p := range partitions {
		n.addSign(ctx, pipe, p, stepMark, look)
		replies = append(replies, n.addSign(ctx, pipe, p, stepSign, look))
	}
	confirmation, confirmed := n.askToConfirm(ctx, pipe)
	_, err := pipe.Exec(ctx) // each command holds its own error
	return replies, confirmed && confirmation.Judge() == nil, redis.HasErrorPrefix(err, "NOSCRIPT")
}

// askToConfirm adds commands to the pipeline that check whether replicas have confirmed the pipeline's writes. If the
// node has too few replicas, askToConfirm returns false.
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

// signOf parses the reply of sign.lua about one partition, with the result of the check of its sentinel key (a marker
// key that reveals lost data). If the reply is an error, or does not have the expected form, signOf returns false.
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

// clockSlack returns the tolerated difference between the clocks of a shard's servers. If the time in a sentinel key (a
// marker key that reveals lost data) is ahead of the server's clock by more than clockSlack, the server's clock was
// wrong.
func (t *Topology) clockSlack() time.Duration { return max(2*t.config.ClockSkew, time.Second) }
