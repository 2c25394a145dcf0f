package whatif

import (
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// overlaps tells which calls about a user were under way at the same time: records do not say in
// which order their users were decided.
type overlaps struct {
	recent []changing
	doubts []doubt
}

// changing is a call that may have changed what its users had been sent.
type changing struct {
	span
	users []*bitmap.Bitmap
}

// span is when, and by which instance, a call may have decided: the record's times are cut to whole milliseconds.
type span struct {
	from, to capping.Instant
	instance string
}

// doubt is the users of a call whose record differs, as long as a call at the same time may come.
type doubt struct {
	span
	users []Difference
}

func spanOf(r *audit.Record) span {
	return span{r.At, r.At + capping.Instant(r.Took.Milliseconds()) + 1, r.Instance}
}

// meets reports whether two calls may have been under way at the same time, by clocks that differ by up to widen
// between instances.
func (s *span) meets(o *span, widen capping.Instant) bool {
	if s.instance == o.instance {
		widen = 0
	}
	return s.from <= o.to+widen && o.from <= s.to+widen
}

func changingOf(r *audit.Record) changing {
	c := changing{span: spanOf(r)}
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Outcome != audit.Denied && g.Outcome != audit.Absent {
			c.users = append(c.users, g.Users)
		}
	}
	return c
}

// has reports whether the call may have changed what the user had been sent.
func (c *changing) has(user capping.UserID) bool {
	return slices.ContainsFunc(c.users, func(b *bitmap.Bitmap) bool { return b.Contains(user) })
}

// began takes the next call in time. What is in doubt and cannot meet one any more differs.
func (o *overlaps) began(r *audit.Record, widen capping.Instant, found *Recheck, keep int) {
	over := func(s *span) bool { return s.to+widen < r.At }
	o.recent = slices.DeleteFunc(o.recent, func(c changing) bool { return over(&c.span) })
	o.doubts = slices.DeleteFunc(o.doubts, func(d doubt) bool {
		if over(&d.span) {
			found.add(d.users, keep)
			return true
		}
		return false
	})
	c := changingOf(r)
	for i := range o.doubts {
		d := &o.doubts[i]
		if !d.meets(&c.span, widen) {
			continue
		}
		before := len(d.users)
		d.users = slices.DeleteFunc(d.users, func(f Difference) bool { return c.has(f.User) })
		found.Overlapping += int64(before - len(d.users))
	}
}

// ended notes a call that was replayed: it explains those that come, and not itself.
func (o *overlaps) ended(r *audit.Record) {
	if c := changingOf(r); len(c.users) > 0 {
		o.recent = append(o.recent, c)
	}
}

// explain reports whether a call before this one that was under way at the same time may have changed what the user had been sent.
func (o *overlaps) explain(s *span, user capping.UserID, widen capping.Instant) bool {
	for i := range o.recent {
		if c := &o.recent[i]; c.meets(s, widen) && c.has(user) {
			return true
		}
	}
	return false
}

// end makes differences of what is still in doubt.
func (o *overlaps) end(found *Recheck, keep int) {
	for i := range o.doubts {
		found.add(o.doubts[i].users, keep)
	}
	o.doubts = nil
}

// add counts differences, and lists the first.
func (c *Recheck) add(list []Difference, keep int) {
	all := len(list)
	known := slices.DeleteFunc(slices.Clone(list), func(d Difference) bool { return d.Unrecorded })
	c.Unrecorded += int64(all - len(known))
	if c.imported {
		list = known
	}
	c.Differ += int64(len(list))
	c.First = append(c.First, list[:min(len(list), max(0, keep-len(c.First)))]...)
}
