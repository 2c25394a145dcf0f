package whatif

import (
	"capper/internal/audit"
	"capper/internal/capping"
)

// settleRecorded adds the call to the histories and counts of users whose recorded outcome remains valid.
func (c *call) settleRecorded(users []capping.UserID, groups []uint16) {
	for i, user := range users {
		outcome := c.r.Groups[groups[i]].Outcome
		sent := c.sends(user, outcome)
		if sent {
			c.histories.add(c.histories.page(int(user>>16)), uint16(user), c.number(), true, true)
		}
		c.countSegment(&c.before, c.codes[i], outcome, sent)
		c.countSegment(&c.after, c.codes[i], outcome, sent)
		if sent && outcome == audit.Replayed {
			c.before.resent()
			c.after.resent()
		}
	}
	if c.observe != nil {
		verdicts := make([]capping.Verdict, len(users))
		for i := range users {
			verdicts[i].Outcome = map[audit.Outcome]capping.Outcome{
				audit.Allowed: capping.Allowed, audit.Replayed: capping.Replayed, audit.Denied: capping.Denied,
			}[c.r.Groups[groups[i]].Outcome]
		}
		c.observe(c.r, c.byID(users), verdicts)
	}
}

// The method "sends" reports whether the call, according to the record, sent the message to the user. If the record
// says that the send is a repetition, but no record has the first send, the repetition counts as the first send. If no
// record has the first send, the send is older than the audit, or belongs to a call without a response.
func (c *call) sends(user capping.UserID, outcome audit.Outcome) bool {
	return outcome == audit.Allowed ||
		outcome == audit.Replayed && !c.histories.sent(c.histories.pages[user>>16], uint16(user), c.r.Channel, c.token)
}

// countSegment adds the outcome of a user to the counts by segment. If the replay uses the recorded counts by segment,
// countSegment only corrects them, because they do not distinguish repeated sends from first sends.
func (c *call) countSegment(to *sum, code uint8, outcome audit.Outcome, sent bool) {
	counts := &to.byCode[code]
	replay := outcome == audit.Replayed && !sent
	if !c.afresh {
		if replay {
			counts.Sends--
			counts.Replayed++
		}
		return
	}
	switch {
	case replay:
		counts.Replayed++
	case outcome == audit.Denied:
		counts.Denied++
	default:
		counts.Sends++
	}
}

// settleJudged adds the call to the histories and counts of users whom the replay has judged again.
func (c *call) settleJudged(users []capping.UserID, groups []uint16, d *capping.Decisions) {
	if c.observe != nil {
		c.observe(c.r, c.byID(users), d.Verdicts)
	}
	c.after.judged += int64(len(users))
	for i, user := range users {
		outcome, v := c.r.Groups[groups[i]].Outcome, &d.Verdicts[i]
		before, after := c.sends(user, outcome), v.Outcome == capping.Allowed
		code := d.Codes[i]
		c.countSegment(&c.before, code, outcome, before)
		c.takeBack(code, &c.r.Groups[groups[i]], before)
		c.countJudged(code, d, i)
		if before != after {
			flow := Counts{gained: int64(one(after)), lost: int64(one(before))}
			c.after.Counts.add(flow)
			c.after.byCode[code].add(flow)
		}
		if before || after {
			c.histories.add(c.histories.page(int(user>>16)), uint16(user), c.number(), before, after)
		}
		may := v.Outcome == capping.Allowed || v.Outcome == capping.Replayed
		if c.counted && (before != after || may != (outcome != audit.Denied)) {
			c.histories.page(int(user>>16)).change(uint16(user), one(after)-one(before))
		}
	}
	c.countShadow(d)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// takeBack subtracts the recorded outcome of a user from the counts of the alternative policy, because the replay has
// judged the user again. The argument "sent" of takeBack is true if the replay counts the recorded outcome as a send. A
// repetition whose first send has no record also counts as a send.
func (c *call) takeBack(code uint8, g *audit.Group, sent bool) {
	counts := Counts{Sends: -1}
	switch {
	case g.Outcome == audit.Denied:
		counts = Counts{Denied: -1}
		c.after.denied(g.Limit, -1)
	case g.Outcome == audit.Replayed:
		counts = Counts{Replayed: -1}
		if sent {
			c.before.resent()
		}
	}
	c.after.Counts.add(counts)
	if c.afresh {
		return
	}
	if g.Outcome == audit.Replayed { // the record counts it among the allowed users
		counts = Counts{Sends: -1}
	}
	c.after.byCode[code].add(counts)
}

// countJudged counts the outcome under the alternative policy for the user with the index i.
func (c *call) countJudged(code uint8, d *capping.Decisions, i int) {
	var counts Counts
	switch d.Verdicts[i].Outcome {
	case capping.Allowed:
		counts.Sends = 1
	case capping.Replayed:
		counts.Replayed = 1
	case capping.Denied:
		counts.Denied = 1
		c.after.denied(d.DeniedBy(i), 1)
	default:
		counts.Unjudged = 1
		c.tallies.note(d.Err)
	}
	c.after.Counts.add(counts)
	c.after.byCode[code].add(counts)
}

// countShadow counts the users whom shadow limits (limits on trial) would have denied.
func (c *call) countShadow(d *capping.Decisions) {
	for i := range d.Verdicts {
		bits := d.Verdicts[i].Shadow
		if bits == 0 {
			continue
		}
		for k, limit := range d.ShadowLimits(i) {
			if k < 32 && bits>>k&1 == 1 {
				c.after.shadow[limit.Name]++
			}
		}
	}
}

// The method release replays the audit record of a release (removal of recorded sends).
func (c *call) release() {
	for i := range c.r.Groups {
		n := int64(c.r.Groups[i].Users.Cardinality())
		switch c.r.Groups[i].Outcome {
		case audit.Released:
			c.before.Released += n
			c.after.Released += n
		case audit.ReleaseUnavailable:
			c.before.unavailable += n
		}
	}
	_ = c.blocks(func(key int) error { // settling releases is never an error
		c.histories.settle(key)
		if p := c.histories.pages[key]; p == nil || p.flat == nil && p.groups == nil {
			return nil
		}
		for g := range c.r.Groups {
			if group := &c.r.Groups[g]; c.in(g, key) && group.Outcome != audit.ReleaseUnavailable {
				if err := c.take(g, group.Users, c.cursors[g]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// settleReleases removes the users' released sends from both histories: from the recorded sends and from the sends
// under the alternative policy. If both histories of a user are equal, the user's released sends are already counted. A
// released send that is not in the recorded history counts as released under both policies.
func (c *call) settleReleases(users []capping.UserID, groups []uint16) {
	horizon := c.r.At - capping.Instant(c.policy.judging.capper.Policy().Retention(c.cfg.Widen).Milliseconds())
	for i, user := range users {
		p := c.histories.pages[user>>16]
		diverged := p.divergedAt(uint16(user))
		recorded, other := c.histories.release(p, uint16(user), c.r.Channel, c.token, horizon)
		before := c.r.Groups[groups[i]].Outcome == audit.Released
		after := len(other) > 0 || before && len(recorded) == 0
		c.countReleased(before, diverged, recorded, other)
		if !diverged || before == after {
			continue
		}
		c.after.Released += int64(one(after) - one(before))
		if c.counted {
			p.change(uint16(user), one(before)-one(after))
		}
	}
}

// countReleased counts, by channel, the sends that a release removed from the histories of a user.
func (c *call) countReleased(released, diverged bool, recorded, other []capping.Channel) {
	if c.released == nil {
		c.released = map[capping.Channel]*pair[Counts]{}
	}
	if !released {
		recorded = nil
	}
	if !diverged {
		other = recorded
	}
	for _, channel := range recorded {
		at(c.released, channel).before.Released++
	}
	for _, channel := range other {
		at(c.released, channel).after.Released++
	}
}
