package publish

import (
	"cmp"
	"slices"

	"capper/internal/segments"
)

// The text withinBounds in a manifest marks a change that the guard allowed without an operator's approval. A manifest
// lists such a change of a set only if the change is between two approved changes.
const withinBounds = "within bounds"

// The function "chained" returns the list of approved changes for the manifest m, which is about to replace the
// manifest "live". The list has the approved changes of the manifest "live" that m does not undo, and the new approved
// changes. The list also has links (allowed changes between two approved changes), so that a service can follow one
// approved change to the next. If a set lost users by a forced publish, "chained" drops the set's earlier approved
// changes. The reason is that a service must not follow a chain across a loss that nobody approved. The list has links
// only for sets that only grow. Other sets may have lost users between two approved changes without an approval.
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

// mayNotLose reports whether the set only grows, according to the manifest.
func mayNotLose(m *segments.Manifest, set string) bool {
	return slices.ContainsFunc(m.Sets, func(s segments.Set) bool { return s.Name == set && s.OnlyGrows })
}

// lostUsers returns the sets with approved changes that lose too many users in this publish: services would need a
// further approval.
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

// The method "accepts" reports whether the operator approved the departure of exactly this number of users from the
// set.
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

// The function "undone" reports whether the manifest m has the users of a set from before the approved change a, or
// from before an earlier approved change. If "undone" returns true, a later publish must not use the approval of the
// change a again.
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
