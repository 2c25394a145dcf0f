package pacing

import (
	"slices"
	"time"
)

// The constant "history" is the number of newest runs (series of permits) that Merge always keeps in a log, even if no
// present limit counts their permits. A later configuration may have a limit with a longer window that counts these
// permits.
const history = 512

// KeepFor returns the time for which a store must keep a pacer's log after the newest slot in the log. KeepFor returns
// the longest window of the limits, but at least a day, because a new configuration may have longer windows.
func KeepFor(limits []Limit) time.Duration {
	longest := 24 * time.Hour
	for _, limit := range limits {
		longest = max(longest, limit.Window)
	}
	return longest
}

// The method Merge reduces the number of runs (series of permits at equal distances) in a log. The method Merge drops
// runs whose permits no limit can count any more at the instant now. The method Merge always keeps the newest runs,
// because a new limit with a longer window may count them. If too many runs remain, Merge moves permits to the slots of
// later permits. The section "The log" of the package documentation explains the groups that Merge makes.
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

// mergedRuns is the largest number of runs with which Merge leaves every permit of a log at its slot.
const mergedRuns = MostRuns / 2

// The method "drop" removes runs (series of permits) from the log if no limit can count their permits any more.
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

// A tier is a range of permits in a log: the permits that one limit counts, and that no limit with a smaller Max
// counts. The tier of the limit with the smallest Max holds the newest permits of the log.
type tier struct{ max, group int64 }

// tiersOf divides the permits of a log into one tier for each limit, smallest Max first. Merge moves the permits of a
// group to a common slot, so each limit loses less than one group of permits. The function tiersOf chooses the smallest
// loss, as a fraction of Max, with which the log has at most mostGroups groups.
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

// leastPart sets the smallest loss, with which tiersOf begins: each limit grants at most Max/leastPart permits too few.
const leastPart = 8000

// mostGroups is the largest number of groups of permits into which Merge may divide a log.
const mostGroups = MostRuns * 3 / 4

// The function "group" chooses, for each tier (range of permits in a log), the number of permits that may get a common
// slot. The argument "part" of the function "group" limits the loss: each limit grants at most Max/part permits too
// few. The result of the function "group" is the number of groups in all tiers. The group size of a tier is a multiple
// of the group size in the tier with the next smaller Max.
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

// mergeGroup copies one group of permits to the log "merged", where all permits of the group get the group's latest
// slot. The argument "permit" of mergeGroup is the number of the group's first permit. If one run contains several
// groups, the permits of these groups keep their slots, and the run stays one run or becomes two runs.
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

// groupEnd returns the number of the first permit after the group that contains the given permit.
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

// The method "copy" appends some permits of the run r to the log: those with the numbers from "from" up to, but not
// including, "to".
func (l *Log) copy(r *Run, from, to int64) {
	if r.Every == 0 {
		l.Append(r.At, 0, to-from, to-from)
		return
	}
	if ahead := (from - r.First) % r.Burst; ahead > 0 { // first copy the remaining permits of a burst
		n := min(r.Burst-ahead, to-from)
		l.Append(r.slot(from-r.First), 0, n, n)
		from += n
	}
	if from < to {
		l.Append(r.slot(from-r.First), r.Every, r.Burst, to-from)
	}
}
