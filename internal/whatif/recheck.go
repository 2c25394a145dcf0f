package whatif

import (
	"capper/internal/audit"
	"capper/internal/capping"
)

// recheck judges users anew under the limits that were in force, and takes what was recorded
// as their history.
func (c *call) recheck(users []capping.UserID, groups []uint16) {
	d := c.decide(users)
	var differ []capping.UserID
	var at []int
	for i, user := range users {
		g := &c.r.Groups[groups[i]]
		known := c.histories.sent(c.histories.pages[user>>16], uint16(user), c.r.Channel, c.token)
		if g.Outcome == audit.Replayed && !known {
			continue // by a send of which the audit knows nothing
		}
		if c.counted {
			c.tallies.recheck.Decisions++
			if !agrees(g, d, i, known) {
				differ, at = append(differ, user), append(at, i)
			}
		}
	}
	if len(differ) > 0 {
		c.differ(differ, at, groups, d)
	}
	if c.observe != nil {
		c.observe(c.r, users, d.Verdicts)
	}
	c.codes = append(c.codes[:0], d.Codes...)
	observe := c.observe
	c.observe = nil
	c.settleRecorded(users, groups)
	c.observe = observe
}

// agrees reports whether a user was decided as the record says. A store may remember a send for longer
// than the limits ask, so that a replay is right whenever the send is known.
func agrees(g *audit.Group, d *capping.Decisions, i int, known bool) bool {
	switch v := &d.Verdicts[i]; g.Outcome {
	case audit.Allowed:
		return v.Outcome == capping.Allowed
	case audit.Replayed:
		return known && (v.Outcome == capping.Replayed || v.Outcome == capping.Allowed || v.Outcome == capping.Denied && v.By == capping.ByLimit)
	case audit.Denied:
		return v.Outcome == capping.Denied && v.By == g.By && d.DeniedBy(i) == g.Limit && (v.By != capping.BySuppression || d.Set(i) == g.Set)
	}
	return true
}

// differ notes users whose record is not what was decided, unless it may be: what was forgotten, when within
// the call they were decided, and calls at the same time may explain it.
func (c *call) differ(users []capping.UserID, at []int, groups []uint16, d *capping.Decisions) {
	found, during := c.tallies.recheck, spanOf(c.r)
	doubted := doubt{span: during}
	for k, user := range users {
		g := &c.r.Groups[groups[at[k]]]
		switch {
		case c.forgot(user, g):
		case c.r.Took > 0 && agrees(g, c.decideAt(users[k:k+1], c.r.At+capping.Instant(c.r.Took.Milliseconds())), 0, true):
			found.WithinSpan++
		case c.overlaps.explain(&during, user, c.widen()):
			found.Overlapping++
		default:
			doubted.users = append(doubted.users, Difference{
				At: c.r.At.Time(), User: user, Message: c.r.Message.ID, Channel: c.channelName(c.r.Channel),
				Recorded: outcomeText(g), Judged: verdictText(d, at[k]), Unrecorded: needsMore(g, &d.Verdicts[at[k]]),
			})
		}
	}
	if len(doubted.users) > 0 {
		c.overlaps.doubts = append(c.overlaps.doubts, doubted)
	}
}

// forgot reports whether the user was decided as the record says if the oldest of the sends are forgotten
// that limits which were once in force did not see any more: a store need not remember them.
func (c *call) forgot(user capping.UserID, g *audit.Group) bool {
	defer func() { c.logs.forgotten = 0 }()
	recorded, _ := c.histories.pages[user>>16].histories(c.histories.pages[user>>16].place(uint16(user)))
	for _, call := range recorded {
		if c.logs.forgotten = c.histories.calls.At(int(call)); c.logs.forgotten > c.unseen {
			break
		}
		if agrees(g, c.decideAt([]capping.UserID{user}, c.r.At), 0, true) {
			return true
		}
	}
	return false
}

// needsMore reports whether a denial needs more sends than are recorded: with these the user would be
// allowed, or would be denied by another limit.
func needsMore(g *audit.Group, v *capping.Verdict) bool {
	denied := g.Outcome == audit.Denied && g.By == capping.ByLimit
	return denied && (v.Outcome == capping.Allowed || v.Outcome == capping.Denied && v.By == capping.ByLimit)
}

func outcomeText(g *audit.Group) string {
	switch g.Outcome {
	case audit.Allowed:
		return "allowed"
	case audit.Replayed:
		return "replayed"
	}
	return deniedText(g.Limit, g.Set)
}

func verdictText(d *capping.Decisions, i int) string {
	switch d.Verdicts[i].Outcome {
	case capping.Allowed:
		return "allowed"
	case capping.Replayed:
		return "replayed"
	case capping.Denied:
		return deniedText(d.DeniedBy(i), d.Set(i))
	}
	return "not judged"
}

func deniedText(limit, set string) string {
	if set != "" {
		return "denied by " + limit + ": " + set
	}
	return "denied by " + limit
}
