package publish

import (
	"cmp"
	"slices"

	"capper/internal/segments"
)

// withinBounds is the change of a link between two acceptances: what the guard let pass.
const withinBounds = "within bounds"

// chained are the acceptances of the manifest m that follows live: those of live that m
// does not undo, links to the new ones, and the new ones. Sets that lost users by force
// have none from before: a reader must not follow them past that loss. Links are for sets
// that only grow: others may have lost more users in between than was accepted.
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

// mayNotLose reports whether a manifest says that a set only grows.
func mayNotLose(m *segments.Manifest, set string) bool {
	return slices.ContainsFunc(m.Sets, func(s segments.Set) bool { return s.Name == set && s.OnlyGrows })
}

// lostUsers are the sets with acceptances that more users leave from base to c than a
// service lets leave, and not by an acceptance.
func (c *Candidate) lostUsers(base *LiveState) map[string]bool {
	lost := map[string]bool{}
	for i, s := range base.manifest.Sets {
		if lastOf(base.manifest.Accepted, s.Name) < 0 {
			continue
		}
		k := slices.IndexFunc(c.Sets, func(is Set) bool { return is.Name == s.Name })
		switch {
		case k < 0:
			lost[s.Name] = !c.accepts(s.Name, s.Cardinality)
		case base.Generation == nil:
			lost[s.Name] = c.Sets[k].Bitmap.SHA256() != s.SHA256
		default:
			left := c.Sets[k].compare(base.Generation.Sets[i]).Removed
			lost[s.Name] = left > segments.Allowed(s.Cardinality, segments.DefaultMayLose) && !c.accepts(s.Name, left)
		}
	}
	return lost
}

// accepts reports whether somebody accepted that so many users leave a set.
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

// undone reports whether m has the users again who left by an acceptance, or by one before
// it: then it must let nobody leave once more.
func undone(a *segments.Accepted, carried []segments.Accepted, m *segments.Manifest) bool {
	is := ""
	for _, s := range m.Entries() {
		if s.Name == nameOf(a) {
			is = s.SHA256
		}
	}
	back := slices.IndexFunc(carried, func(c segments.Accepted) bool {
		return nameOf(&c) == nameOf(a) && c.FromSHA256 == is
	})
	return back >= 0 && !carried[back].At.After(a.At)
}
