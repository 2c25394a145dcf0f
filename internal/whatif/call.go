package whatif

import (
	"context"
	"fmt"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// call is a record that is replayed.
type call struct {
	*engine
	r       *audit.Record
	policy  *inForce
	token   capping.Token
	counted bool
	alike   *likeness
	// whole: what was recorded is the outcome of every block of users none of whom has
	// diverged, without a look at them.
	whole bool
	// everybody is judged, also those whose outcome is the recorded one: only so are shadow limits counted right.
	everybody bool
	// afresh: segments are counted user by user, under both policies by the generation that decides, and not as
	// recorded.
	afresh   bool
	segments capping.Segments // nil: nobody has asked yet
	names    []string
	same     []bool // by code: judged alike
	n        uint32 // the call's number in the histories
	numbered bool

	before, after sum
	// of a release: where the sends were, of users whose sends are known
	released     map[capping.Channel]*pair[Counts]
	users        []capping.UserID // those who are looked at next
	groups       []uint16         // of each, an index into the record's
	codes        []uint8
	cursors      []int
	judgedUsers  []capping.UserID
	judgedGroups []uint16
}

// atOnce is how many users are looked at at once: few enough that they stay in a core's cache.
const atOnce = 1 << 12

// begin takes a record.
func (c *call) begin(e *engine, r *audit.Record, policy *inForce) error {
	if len(r.Groups) >= 1<<16 {
		return fmt.Errorf("record %d of %s: unexpected number of groups: %d", r.Sequence, r.Instance, len(r.Groups))
	}
	c.engine, c.r, c.policy, c.token = e, r, policy, r.Message.Token()
	c.counted = r.At >= e.cfg.Since && (e.cfg.Until == 0 || r.At < e.cfg.Until)
	c.segments, c.names, c.numbered, c.everybody = nil, nil, false, false
	c.before.reset()
	clear(c.released)
	c.after.reset()
	return nil
}

// filter replays a filter call.
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

// lookUp finds the segments that decide.
func (c *call) lookUp() (err error) {
	if c.segments != nil {
		return nil
	}
	if c.segments, err = c.generation(c.r.Generation); err != nil {
		return err
	}
	c.names = c.segments.Names()
	c.same = append(c.same[:0], c.alike.rest || c.alike.all)
	for _, name := range c.names {
		c.same = append(c.same, c.alike.all || c.alike.has(name))
	}
	c.before.byCode, c.after.byCode = resized(c.before.byCode, len(c.names)+1), resized(c.after.byCode, len(c.names)+1)
	return nil
}

// count takes what the record says, on both sides: what is judged anew is counted instead of it later.
func (c *call) count() {
	users, told := int64(0), int64(0)
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
		told += int64(s.Requested)
	}
	c.before.erased = max(0, told-users)
	c.afresh = told != users || c.cfg.Generation != "" && c.cfg.Generation != c.r.Generation
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

// anyDiverged reports whether any block of the call's users has one who has diverged.
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

// blocks goes over the keys of all blocks with users of the call, ascending; meanwhile c.cursors
// tell of each group where its block of the key, or the next one, is. What users of
// them are to be looked at is flushed.
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

// in reports whether the group has users in the block.
func (c *call) in(group, key int) bool {
	users, at := c.r.Groups[group].Users, c.cursors[group]
	return at < users.Filled() && users.KeyAt(at) == key
}

// block takes the users of a filter call in one block.
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
		default: // whether a replay is of a send that is known, its user's history tells
			c.histories.settle(key)
		}
		if err := c.take(g, group.Users, c.cursors[g]); err != nil {
			return err
		}
	}
	return nil
}

// number is the call's number in the histories.
func (c *call) number() uint32 {
	if !c.numbered {
		c.n = c.histories.call(capping.Entry{At: c.r.At, Channel: c.r.Channel, Token: c.token})
		c.numbered = true
	}
	return c.n
}

// take puts the users of a group's block among those who are looked at next.
func (c *call) take(group int, users *bitmap.Bitmap, at int) error {
	from := len(c.users)
	c.users = users.AppendAt(c.users, at)
	for range len(c.users) - from {
		c.groups = append(c.groups, uint16(group))
	}
	if len(c.users) < atOnce {
		return nil
	}
	return c.flush()
}

// flush looks at the users who were taken.
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

// look decides which of the users are judged anew.
func (c *call) look(users []capping.UserID, groups []uint16) {
	c.codes = resized(c.codes, len(users))
	c.segments.Lookup(users, c.codes)
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
			c.countShadow(c.decide(users[:kept]))
		}
		c.settleRecorded(users[:kept], groups[:kept])
	}
	if len(judged) > 0 {
		c.settleJudged(judged, judgedGroups, c.decide(judged))
	}
}

// decide lets the domain decide of users, as of the record's time.
func (c *call) decide(users []capping.UserID) *capping.Decisions {
	c.policy.judging.segments = c.segments
	return c.policy.judging.capper.Filter(context.Background(), &capping.Send{
		Message: c.r.Message, Channel: c.r.Channel, Users: users, Enforce: !c.r.Exempt, At: max(c.r.At, 1),
	})
}
