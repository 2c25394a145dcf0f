package publish

import (
	"cmp"
	"slices"

	"capper/internal/segments"
)

// withinBounds is the text in a manifest for a change that the guard allowed without an operator's approval. If the
// guard allowed a change of a set between two approved changes, the manifest lists the change with the text
// withinBounds.
const withinBounds = "within bounds"

// chained returns the list of approved changes for the manifest m, which is about to replace the manifest "live". The
// list that chained returns has two kinds of approved changes: those of the manifest "live" that m does not undo, and
// the new ones. Links between the approved changes make a chain, so that readers can follow one approved change to the
// next. If a set lost users by a forced publish, chained drops its earlier approved changes. A reader must not follow
// approved changes past a loss that nobody approved. Only the approved changes of sets that only grow have links,
// because other sets may have lost users between two approved changes without an approval.
func chained(live, m *segments.Manifest, accepted []segments.Accepted,
	lost map[string]bool) (list []segments.Accepted) {
	carried := live.CarriedAccepted(m.CreatedAt, 0)
	carried = slices.DeleteFunc(carried, func(a segments.Accepted) bool {
		return lost[a.Set] ||
			undone(&a, carried, m)
	})
	for _, a := range accepted {
		i := lastOf(carried, nameOf(&a))
		if i < 0 || !mayNotLose(live, a.Set) || carried[i].ToSHA256 == "" || carried[i].ToSHA256 == a.FromSHA256 {
			continue
		}
		link := a
		link.FromSHA256, link.ToSHA256, link.Removed, link.Change = carried[i].ToSHA256, a.FromSHA256, 0, withinBounds
		list = append(list, link)
	}
	list = append(list[:max(0, min(len(list), segments.MaxAccepted-len(accepted)))], accepted...)
	return append(carried[max(0, min(len(carried), len(carried)+len(list)-segments.MaxAccepted)):], list...)
}

// mayNotLose reports whether the manifest says that the set only grows, that is, that users must not leave it.
func mayNotLose(m *segments.Manifest, set string) bool {
	return slices.ContainsFunc(m.Sets, func(s segments.Set) bool { return s.Name == set && s.OnlyGrows })
}

// lostUsers returns sets that lose many users in this publish although earlier changes were approved: more users than a
// service tolerates without a further approval.
func (c *Candidate) lostUsers(base *LiveState) map[string]bool {
	lost := map[string]bool{}
	for _, s := range base.manifest.Sets {
		is := c.set(s.Name)
		if lastOf(base.manifest.Accepted, s.Name) < 0 || is == nil && c.Carried != nil {
			continue
		}
		switch {
		case is == nil:
			lost[s.Name] = !c.accepts(s.Name, s.Cardinality)
		case base.Generation == nil:
			lost[s.Name] = c.users(s.Name) != base.manifest.Users(&s.Segment)
		default:
			left := is.compare(CandidateOf(base.Generation).set(s.Name).Bitmap).Removed
			lost[s.Name] = left > segments.Allowed(s.Cardinality, segments.DefaultMayLose) && !c.accepts(s.Name, left)
		}
	}
	return lost
}

// accepts reports whether the operator approved that exactly this number of users leave the set.
func (c *Candidate) accepts(set string, left uint64) bool {
	return slices.ContainsFunc(c.Accepted, func(a segments.Accepted) bool { return a.Set == set && a.Removed == left })
}

func nameOf(a *segments.Accepted) string { return cmp.Or(a.Set, a.Segment) }

func lastOf(list []segments.Accepted, name string) int {
	for i := len(list) - 1; i >= 0; i-- {
		if nameOf(&list[i]) == name {
			return i
		}
	}
	return -1
}

// undone reports whether users are back in a set in the manifest m who left the set by the approved change a, or by an
// earlier approved change. If the users are back, a later publish must not use the old approval to let them leave
// again.
func undone(a *segments.Accepted, carried []segments.Accepted, m *segments.Manifest) bool {
	is := ""
	for _, s := range m.Entries() {
		if s.Name == nameOf(a) {
			is = m.Users(s)
		}
	}
	back := slices.IndexFunc(carried, func(c segments.Accepted) bool {
		return nameOf(&c) == nameOf(a) && c.FromSHA256 == is
	})
	return back >= 0 && !carried[back].At.After(a.At)
}
