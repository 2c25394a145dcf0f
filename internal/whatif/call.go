package whatif

import (
	"context"
	"fmt"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// A call is the state of a recorded call while the replay decides it again under the alternative policy.
type call struct {
	*engine
	r       *audit.Record
	policy  *inForce
	token   capping.Token
	counted bool
	alike   *likeness
	// The field whole is true if the recorded outcome remains valid for all users whose two histories are equal. If all
	// users of a block of ids have equal histories, the replay then checks no single users of the block.
	whole bool
	// The field everybody is true if the replay must judge all users again, even users whose recorded outcome remains
	// valid. Otherwise, the counts of shadow limits (limits on trial) would be wrong.
	everybody bool
	// If the field afresh is true, the replay counts the users by segment, for both policies, in the segments
	// generation that decides the call. If afresh is false, the replay uses the recorded counts by segment.
	afresh   bool
	segments capping.Segments // nil: not loaded yet
	sets     recordedSets     // segments, with the suppressed sets that the record shows
	names    []string
	same     []bool // by segment code: the same rules hold under both policies
	n        uint32 // the call's number in the histories
	numbered bool

	before, after sum
	// The field released holds counts of released sends by channel, for users whose sends are known.
	released     map[capping.Channel]*pair[Counts]
	users        []capping.UserID // users to check next, by the numbers of the histories
	groups       []uint16         // for each user, an index into the record's groups
	ids          []uint32         // ids of the users of a group in one block
	numbers      []uint32
	codes        []uint8
	cursors      []int
	judgedUsers  []capping.UserID
	judgedGroups []uint16
	images       []capping.UserID // ids of the users, in place of their numbers
}

// atOnce is the number of users that the replay checks together. The constant atOnce is small enough that the data of
// as many users fits in the cache of a processor core.
const atOnce = 1 << 12

// The method begin prepares the call c for the replay of the next audit record.
func (c *call) begin(e *engine, r *audit.Record, policy *inForce) error {
	if len(r.Groups) >= 1<<16 {
		return fmt.Errorf("audit record %d of capper instance %s has too many groups of users: %d",
			r.Sequence, r.Instance, len(r.Groups))
	}
	c.engine, c.r, c.policy, c.token = e, r, policy, r.Message.Token()
	c.counted = r.At >= e.cfg.Since && (e.cfg.Until == 0 || r.At < e.cfg.Until)
	c.segments, c.names, c.numbered, c.everybody = nil, nil, false, false
	c.before.reset()
	clear(c.released)
	c.after.reset()
	return nil
}

// The method filter replays a filter call.
func (c *call) filter() error {
	c.alike = c.likenessOf(c.r, c.policy, c.token)
	c.count()
	if !c.alike.all || c.anyDiverged() {
		c.everybody = shadows(c.policy.Policy, c.r.Channel) || shadows(c.policy.judging.capper.Policy(), c.r.Channel)
	}
	c.whole = c.alike.all && !c.afresh && !c.everybody
	if !c.whole {
		if err := c.lookUp(); err != nil {
			return err
		}
	}
	if c.everybody {
		clear(c.after.shadow)
	}
	return c.blocks(func(key int) error { return c.block(key) })
}

// lookUp loads the segments generation (published version) with which the replay decides the call.
func (c *call) lookUp() (err error) {
	if c.segments != nil {
		return nil
	}
	if c.segments, err = c.generation(c.r.Generation); err != nil {
		return err
	}
	c.sets.take(c.r, c.policy.Policy, c.segments, c.own())
	c.names = c.segments.Names()
	c.same = append(c.same[:0], c.alike.rest || c.alike.all)
	for _, name := range c.names {
		c.same = append(c.same, c.alike.all || c.alike.has(name))
	}
	c.before.byCode, c.after.byCode = resized(c.before.byCode, len(c.names)+1), resized(c.after.byCode, len(c.names)+1)
	return nil
}

// The method "own" reports whether the replay decides the call with the segments generation (published version) of the
// audit record.
func (c *call) own() bool { return c.cfg.Generation == "" || c.cfg.Generation == c.r.Generation }

// The method count adds the numbers of users in the audit record to the counts of both policies. If the replay later
// judges a user again, the replay corrects the counts of the alternative policy.
func (c *call) count() {
	users, requested := int64(0), int64(0)
	for i := range c.r.Groups {
		g := &c.r.Groups[i]
		n := int64(g.Users.Cardinality())
		users += n
		switch g.Outcome {
		case audit.Allowed:
			c.before.Sends += n
		case audit.Replayed:
			c.before.Replayed += n
		case audit.Denied:
			c.before.Denied += n
			c.before.denied(g.Limit, n)
		case audit.Unavailable:
			c.before.unavailable += n
		}
	}
	for _, s := range c.r.Segments {
		requested += int64(s.Requested)
	}
	c.before.erased = max(0, requested-users)
	c.afresh = requested != users || !c.own()
	for _, s := range c.r.Segments {
		if !c.afresh {
			c.before.segment(s.Name).add(Counts{Sends: int64(s.Allowed), Denied: int64(s.Denied)})
		}
	}
	for _, s := range c.r.Shadow {
		c.before.shadow[s.Name] += int64(s.Users)
	}
	c.after.copy(&c.before)
}

// anyDiverged reports whether the call contains a user whose two histories (recorded, and under the alternative policy)
// differ.
func (c *call) anyDiverged() (found bool) {
	for i := range c.r.Groups {
		users := c.r.Groups[i].Users
		for k := range users.Filled() {
			if p := c.histories.pages[users.KeyAt(k)]; p != nil && p.diverged > 0 {
				return true
			}
		}
	}
	return false
}

// The method "blocks" calls the function "each" for every block of 65,536 ids with users of the call, in ascending
// order. During a call of "each", c.cursors holds, for each group of the record, the position of the current block or
// of the group's next block. After the last block of ids, the method "blocks" checks the users in the queue.
func (c *call) blocks(each func(key int) error) error {
	c.cursors = resized(c.cursors, len(c.r.Groups))
	for {
		key := bitmap.MaxBlocks
		for g, at := range c.cursors {
			if users := c.r.Groups[g].Users; at < users.Filled() {
				key = min(key, users.KeyAt(at))
			}
		}
		if key == bitmap.MaxBlocks {
			return c.flush()
		}
		if err := each(key); err != nil {
			return err
		}
		for g, at := range c.cursors {
			if users := c.r.Groups[g].Users; at < users.Filled() && users.KeyAt(at) == key {
				c.cursors[g]++
			}
		}
	}
}

// The method "in" reports whether the group of the audit record has users in the current block of ids. The argument
// "key" of the method "in" is the key of the current block.
func (c *call) in(group, key int) bool {
	users, at := c.r.Groups[group].Users, c.cursors[group]
	return at < users.Filled() && users.KeyAt(at) == key
}

// The method block replays a filter call for the call's users in one block of 65,536 ids.
func (c *call) block(key int) error {
	p := c.histories.pages[key]
	whole := c.whole && (p == nil || p.diverged == 0)
	if p == nil {
		p = c.histories.page(key)
	}
	if !whole {
		c.histories.settle(key)
	}
	for g := range c.r.Groups {
		group := &c.r.Groups[g]
		if !c.in(g, key) || group.Outcome == audit.Unavailable {
			continue
		}
		if c.counted {
			p.ask(group.Users, key)
		}
		switch {
		case !whole:
		case group.Outcome == audit.Allowed:
			c.histories.later(p, group.Users, c.cursors[g], c.number())
			continue
		case group.Outcome == audit.Denied:
			continue
		default: // only the user's history shows whether a replayed send is known
			c.histories.settle(key)
		}
		if err := c.take(g, group.Users, c.cursors[g]); err != nil {
			return err
		}
	}
	return nil
}

// The method number returns the call's number in the histories (lists of users' sends).
func (c *call) number() uint32 {
	if !c.numbered {
		c.n = c.histories.call(capping.Entry{At: c.r.At, Channel: c.r.Channel, Token: c.token})
		c.numbered = true
	}
	return c.n
}

// The method take queues the users of a group who are in one block of ids. The method flush checks the queued users one
// by one.
func (c *call) take(group int, users *bitmap.Bitmap, at int) error {
	c.ids = users.AppendAt(c.ids[:0], at)
	c.users = capping.AppendUsers(c.users, c.ids)
	for range c.ids {
		c.groups = append(c.groups, uint16(group))
	}
	if len(c.users) < atOnce {
		return nil
	}
	return c.flush()
}

// The method flush checks the users in the queue, and adds the users' outcomes to the histories (lists of sends) and to
// the counts.
func (c *call) flush() error {
	users, groups := c.users, c.groups
	c.users, c.groups = c.users[:0], c.groups[:0]
	if len(users) == 0 {
		return nil
	}
	if c.r.Kind == audit.Release {
		c.settleReleases(users, groups)
		return nil
	}
	if err := c.lookUp(); err != nil {
		return err
	}
	for from := 0; from < len(users); from += atOnce {
		to := min(from+atOnce, len(users))
		c.look(users[from:to], groups[from:to])
	}
	return nil
}

// The method look finds the queued users who need a new decision. A user needs a new decision if the policies have
// different rules for the user, or if the user's two histories differ.
func (c *call) look(users []capping.UserID, groups []uint16) {
	c.codes, c.numbers = resized(c.codes, len(users)), resized(c.numbers, len(users))
	c.segments.Numbers(c.byID(users), c.numbers)
	c.segments.Lookup(c.numbers, c.codes)
	judged := c.judgedUsers[:0]
	judgedGroups := c.judgedGroups[:0]
	kept := 0
	for i, user := range users {
		if c.same[c.codes[i]] && !c.histories.pages[user>>16].divergedAt(uint16(user)) {
			users[kept], groups[kept], c.codes[kept] = user, groups[i], c.codes[i]
			kept++
			continue
		}
		judged, judgedGroups = append(judged, user), append(judgedGroups, groups[i])
	}
	c.judgedUsers, c.judgedGroups = judged, judgedGroups
	if kept > 0 {
		if c.everybody {
			c.countShadow(c.decide(users[:kept], groups[:kept]))
		}
		c.settleRecorded(users[:kept], groups[:kept])
	}
	if len(judged) > 0 {
		c.settleJudged(judged, judgedGroups, c.decide(judged, judgedGroups))
	}
}

// byID converts the users' small numbers in the replay to the users' ids. The slice that byID returns is valid until
// the next call of byID.
func (c *call) byID(users []capping.UserID) []capping.UserID {
	return c.histories.numbers.Users(&c.images, users)
}

// The method decide decides users with the code of the service (capping.Capper), at the time of the recorded call. For
// the decision, the members of sets come from the record. The argument "groups" of the method decide holds, for each
// user, the index of the user's group in the audit record.
func (c *call) decide(users []capping.UserID, groups []uint16) *capping.Decisions {
	c.policy.judging.segments = c.segments
	if len(c.sets.names) > 0 {
		c.sets.groups = groups
		c.policy.judging.segments = &c.sets
	}
	return c.policy.judging.capper.Filter(context.Background(), &capping.Send{
		Message: c.r.Message, Channel: c.r.Channel, Users: c.byID(users), Enforce: !c.r.Exempt, At: max(c.r.At, 1),
	})
}
