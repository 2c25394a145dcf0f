package verify

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// A send may have no record in the audit, because the instance that recorded the send was killed or dropped the record.
// A later call for the same message may have found the send in the store (audit.Replayed). The record of this later
// call then shows that the store must have the send. The time of the send is unknown, but it is before the later call.
// Verify therefore does not check an unrecorded send against limits.

// For each block of 65,536 ids, countRepeats counts the users of a group whose sends an earlier call had recorded
// (outcome audit.Replayed).
func (s *work) countRepeats(g *audit.Group) {
	if s.config.Store != nil && g.Outcome == audit.Replayed {
		countBlocks(g, &s.repeats)
	}
}

// useRepeats makes the passes also read the groups of repeated sends (outcome audit.Replayed). Verify needs these
// groups only if it compares the audit with the store and audit records may be missing.
func (s *work) useRepeats() {
	if s.expected == nil || len(s.unsure) == 0 {
		return
	}
	s.repeating = true
	for i, n := range s.repeats {
		s.counts[i] += n
	}
}

// The method "unrecorded" reports whether the event with the index i is the first that shows a send without a record in
// the audit. A send has no record if a repeated call shows the send, but no event of the user records it.
func (t *table) unrecorded(events []event, i int) bool {
	c := &t.calls[events[i].call]
	for k, e := range events {
		other := &t.calls[e.call]
		if other.message != c.message || other.channel != c.channel {
			continue
		}
		if e.what == sent || e.what == repeated && k < i {
			return false
		}
	}
	return slices.ContainsFunc(t.unsure, func(u span) bool { return u.from <= c.to })
}

// recordedOnly returns the sends with a record in the audit.
func recordedOnly(sends []send) []send {
	if !slices.ContainsFunc(sends, func(s send) bool { return s.unrecorded }) {
		return sends
	}
	return slices.DeleteFunc(slices.Clone(sends), func(s send) bool { return s.unrecorded })
}

// A campaign is a message on a channel.
type campaign struct {
	message capping.Message
	channel capping.Channel
}

// takeUnrecorded removes the unrecorded sends (known only from a repeated call) from c.missing. The method
// takeUnrecorded returns the removed sends that no filter call in the whole audit has recorded. If a call before the
// compared period recorded a send, the store may have dropped the send since then.
func (c *comparison) takeUnrecorded(ctx context.Context, w *work) ([]MissingSend, error) {
	open := map[campaign][]MissingSend{}
	c.missing = slices.DeleteFunc(c.missing, func(m MissingSend) bool {
		if m.unrecorded {
			of := campaign{m.Message, m.Channel}
			open[of] = append(open[of], m)
		}
		return m.unrecorded
	})
	if len(open) == 0 {
		return nil, nil
	}
	for r, err := range w.archive.Records(ctx, archive.Query{Kinds: []audit.Kind{audit.Filter}}) {
		if errors.As(err, new(*archive.FileError)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		of := campaign{r.Message, r.Channel}
		if len(open[of]) > 0 {
			open[of] = slices.DeleteFunc(open[of], func(m MissingSend) bool { return allows(r, m.User) })
		}
	}
	return slices.Concat(slices.Collect(maps.Values(open))...), nil
}

// The function "allows" reports whether the call of the record has recorded a send to the user.
func allows(r *audit.Record, user capping.UserID) bool {
	return slices.ContainsFunc(r.Groups, func(g audit.Group) bool { return g.Outcome == audit.Allowed && g.Has(user) })
}

func byTime(a, b MissingSend) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.User, b.User))
}
