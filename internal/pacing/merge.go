package pacing

import (
	"slices"
	"time"
)

// history is the number of runs that a log keeps although no limit can count them any more. If a new limit has a longer
// window, it can count the permits of these runs.
const history = 512

// KeepFor returns the time for which a store must keep a log after its newest slot. KeepFor returns the longest window,
// but at least a day, because limits may change.
func KeepFor(limits []Limit) time.Duration {
	longest := 24 * time.Hour
	for _, limit := range limits {
		longest = max(longest, limit.Window)
	}
	return longest
}

// Merge makes the log shorter. Merge drops runs that no limit can count at the instant now, except for a short history.
// If too many runs remain, Merge moves permits to the slots of later permits. The package documentation explains how
// Merge groups permits.
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
	l.Runs = merged.Runs
}

// mergedRuns is the number of runs up to which Merge moves no permit.
const mergedRuns = MostRuns / 2

// drop removes runs that no limit can count any more.
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

// tier is the range of permits that one limit counts and that no smaller limit counts. A tier holds the newest max
// permits of the log, except the permits in the tiers of smaller limits.
type tier struct{ max, group int64 }

// tiersOf returns the tiers of the limits, smallest Max first. Each limit loses the same fraction of its Max, namely
// one permit less than the size of its groups. The fraction is as small as the maximum number of groups allows.
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

// leastPart sets the smallest loss that tiersOf tries: 1/leastPart of Max, if the log has space for so many groups.
const leastPart = 8000

// mostGroups is the largest number of groups in a log.
const mostGroups = MostRuns * 3 / 4

// group sets the group size of each tier, so that its limit loses at most 1/part of Max. group returns the number of
// groups. The group size of a tier is a multiple of the group size of the tier below.
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

// mergeGroup moves the permits of the group that starts with permit into merged, and returns the first permit of the
// next group. If a regular run spans several groups, it stays one run or becomes two runs.
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

// groupEnd returns the number that follows the last permit of the group with the given permit.
func (l *Log) groupEnd(permit int64, tiers []tier) int64 {
	age, below := l.Total-permit, int64(0)
	for _, t := range tiers {
		if age <= t.max {
			return min((permit/t.group+1)*t.group, l.Total-below, l.Total)
		}
		below = t.max
	}
	return min(l.Total-below, l.Total) // no limit counts these permits
}

// copy appends the permits of the run r with the numbers from (inclusive) to to (exclusive) to the log.
func (l *Log) copy(r *Run, from, to int64) {
	if r.Every == 0 {
		l.Append(r.At, 0, to-from, to-from)
		return
	}
	if ahead := (from - r.First) % r.Burst; ahead > 0 { // begin with the remaining permits of a burst
		n := min(r.Burst-ahead, to-from)
		l.Append(r.slot(from-r.First), 0, n, n)
		from += n
	}
	if from < to {
		l.Append(r.slot(from-r.First), r.Every, r.Burst, to-from)
	}
}
