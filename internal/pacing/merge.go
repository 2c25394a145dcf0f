package pacing

import (
	"slices"
	"time"
)

// history is how many runs a log keeps that no limit can see any more, so that
// limits that look farther back after a change see what they can.
const history = 512

// KeepFor is for how long a log is kept after its newest slot, at least: as long as
// its longest window, and no less than a day, for limits that change.
func KeepFor(limits []Limit) time.Duration {
	longest := 24 * time.Hour
	for _, limit := range limits {
		longest = max(longest, limit.Window)
	}
	return longest
}

// Merge makes room in the log: it drops what no limit can see any more as of now, but
// for some, and moves permits to the slots of later ones where too many runs are left.
// See the package's documentation for the rule.
func (l *Log) Merge(now Time, limits []Limit) {
	l.drop(now, limits)
	tiers := tiersOf(limits)
	if len(l.Runs) <= mergedRuns {
		return
	}
	merged := Log{Total: l.first()}
	for permit := l.first(); permit < l.Total; {
		permit = l.mergeGroup(&merged, permit, tiers)
	}
	*l = merged
}

// mergedRuns is how many runs Merge leaves, at least where the limits' groups are
// not so many.
const mergedRuns = MostRuns / 2

// drop forgets runs that no limit can see.
func (l *Log) drop(now Time, limits []Limit) {
	var greatest int64
	longest := KeepFor(limits).Microseconds()
	for _, limit := range limits {
		greatest = max(greatest, int64(limit.Max))
	}
	gone := 0
	for i := range l.Runs {
		if r := &l.Runs[i]; l.end(i) > l.Total-greatest && r.slot(l.end(i)-1-r.First)+Time(longest) > now {
			break
		}
		gone = i + 1
	}
	gone = max(0, min(gone, len(l.Runs)-history))
	l.Runs = slices.Delete(l.Runs, 0, gone)
}

// tier is the permits that a limit has yet to see and no lesser one has: those
// from the newest but max on.
type tier struct{ max, group int64 }

// tiersOf are the tiers of the limits, the least first. The loss of a limit, a permit less
// than its group, is the same part of each Max: the least with which the groups are not
// too many.
func tiersOf(limits []Limit) (tiers []tier) {
	for _, limit := range limits {
		tiers = append(tiers, tier{max: int64(limit.Max)})
	}
	slices.SortFunc(tiers, func(a, b tier) int { return int(a.max - b.max) })
	tiers = slices.CompactFunc(tiers, func(a, b tier) bool { return a.max == b.max })
	for part := int64(leastPart); group(tiers, part) > mostGroups; {
		part -= part / 64
	}
	return tiers
}

// leastPart is the part of Max that is lost at most, as in 1/leastPart, when there is
// room for its groups.
const leastPart = 8000

// mostGroups is how many groups the tiers of a log may have.
const mostGroups = MostRuns * 3 / 4

// group sets the groups with which each limit loses at most 1/part, each a multiple of
// that of the tier below, and tells how many there are.
func group(tiers []tier, part int64) (groups int64) {
	size, below := int64(1), int64(0)
	for i := range tiers {
		t := &tiers[i]
		size = max(size, (t.max/part+1)/size*size)
		t.group = size
		groups += (t.max-below)/size + 2
		below = t.max
	}
	return groups
}

// mergeGroup moves the permits of the group that begins with permit to merged, and
// answers where the next one begins. What is regular over several groups stays so:
// it may take two runs, and never more than there are groups.
func (l *Log) mergeGroup(merged *Log, permit int64, tiers []tier) (next int64) {
	end := l.groupEnd(permit, tiers)
	run := l.holder(permit)
	next = end
	for next < l.end(run) {
		after := l.groupEnd(next, tiers)
		if after > l.end(run) {
			break
		}
		next = after
	}
	if next > end {
		merged.copy(&l.Runs[run], permit, next)
		return next
	}
	holder := &l.Runs[l.holder(end-1)]
	merged.Append(holder.slot(end-1-holder.First), 0, end-permit, end-permit)
	return end
}

// groupEnd is the number after the last permit of the group that the permit is in.
func (l *Log) groupEnd(permit int64, tiers []tier) int64 {
	age, below := l.Total-permit, int64(0)
	for _, t := range tiers {
		if age <= t.max {
			return min((permit/t.group+1)*t.group, l.Total-below, l.Total)
		}
		below = t.max
	}
	return min(l.Total-below, l.Total) // nobody sees them
}

// copy appends the permits of a run from one number to before another.
func (l *Log) copy(r *Run, from, to int64) {
	if r.Every == 0 {
		l.Append(r.At, 0, to-from, to-from)
		return
	}
	if ahead := (from - r.First) % r.Burst; ahead > 0 { // begin with what is left at a slot
		n := min(r.Burst-ahead, to-from)
		l.Append(r.slot(from-r.First), 0, n, n)
		from += n
	}
	if from < to {
		l.Append(r.slot(from-r.First), r.Every, r.Burst, to-from)
	}
}
