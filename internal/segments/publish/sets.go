package publish

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// A direction contains the setting "only grows" of a set in the earlier manifest and in the build.
type direction struct{ was, is Growth }

// directionsOf returns the setting "only grows" of each set in a candidate (built but unpublished generation) or in an
// earlier manifest.
func directionsOf(c *Candidate, before *segments.Manifest) map[string]*direction {
	of := map[string]*direction{}
	for _, s := range before.Sets {
		was := Growth{Said: true, OnlyGrows: s.OnlyGrows, MaxLoss: s.MaxLoss}
		of[s.Name] = &direction{was: was, is: was}
	}
	for _, s := range c.Sets {
		switch of[s.Name] {
		case nil:
			of[s.Name] = &direction{is: s.Growth}
		default:
			if s.Growth.Said {
				of[s.Name].is = s.Growth
			}
		}
	}
	return of
}

// maxLoss returns the stricter of the old and the new limit on users who leave a set that only grows. If the set does
// not only grow, the result "ok" is false.
func (d *direction) maxLoss() (percent float64, ok bool) {
	switch {
	case d.was.OnlyGrows && d.is.OnlyGrows:
		return min(d.was.MaxLoss, d.is.MaxLoss), true
	case d.was.OnlyGrows:
		return d.was.MaxLoss, true
	}
	return d.is.MaxLoss, d.is.OnlyGrows
}

// The method "lifted" returns a refusal if the build allows more users to leave the set than the earlier manifest.
func (d *direction) lifted() string {
	switch {
	case !d.was.OnlyGrows || d.is.OnlyGrows && d.is.MaxLoss <= d.was.MaxLoss:
		return ""
	case !d.is.OnlyGrows:
		return fmt.Sprintf("only grows (at most %s %% of its users may leave), but this build no longer says so",
			segments.BoundText(d.was.MaxLoss))
	}
	return fmt.Sprintf("only grows: at most %s %% of its users may leave, but this build allows %s %%",
		segments.BoundText(d.was.MaxLoss), segments.BoundText(d.is.MaxLoss))
}

// setJudge is the part of the guard for sets. A setJudge decides whether to refuse changes of sets from an earlier
// generation to a candidate (built but unpublished generation).
type setJudge struct {
	*Bounds
	before     *segments.Generation
	directions map[string]*direction
	// The function "everybody" returns the number of users in all segments and sets of the earlier generation. For an
	// amend (publish of some sets), it returns a lower bound of this number.
	everybody func() uint64
	// The field "zones" contains the bitmaps of the candidate's time zone sets.
	zones []*bitmap.Bitmap
}

func (b *Bounds) newSetJudge(c *Candidate, before *segments.Generation) *setJudge {
	j := &setJudge{Bounds: b, before: before, directions: directionsOf(c, before.Manifest)}
	j.everybody = sync.OnceValue(func() uint64 {
		if c.Carried != nil {
			return usersOf(c.Carried)
		}
		all, _, _ := bitmap.Unions(slices.Concat(before.Bitmaps, before.Sets), nil)
		return all
	})
	for _, s := range c.Sets {
		if isZone(s.Name) {
			j.zones = append(j.zones, s.Bitmap)
		}
	}
	return j
}

// usersOf returns a lower bound for the number of users in a generation (published version), without reading bitmaps.
// The lower bound is the larger of two numbers: the sum over all segments, which share no users, and the number of
// users in the largest set.
func usersOf(m *segments.Manifest) (users uint64) {
	for _, s := range m.Segments {
		users += s.Cardinality
	}
	for _, s := range m.Sets {
		users = max(users, s.Cardinality)
	}
	return users
}

// The method "change" returns the reasons for which the guard refuses the change of a set. The rules for segments also
// apply to sets. If a set only grows, the method "change" also returns a reason when too many users leave the set. The
// limit on leaving users also applies to a set that only grew in the earlier manifest, even if the build no longer has
// this setting.
func (j *setJudge) change(c *Change, all []Change) (refusals []string) {
	d := j.directions[c.Set]
	loss, onlyGrows := d.maxLoss()
	if why := d.lifted(); why != "" && c.State != Vanishes {
		refusals = append(refusals, c.What()+" "+why)
	}
	switch {
	case onlyGrows && (c.State == changed || c.State == fills):
		refusals = append(refusals, judgeLoss(c, loss, "", "")...)
		return append(refusals, j.judgeGrowth(c, j.maxChange(c.Set), "", "")...)
	case isZone(c.Set) && j.free(c):
		return append(refusals, j.judgeZone(c)...)
	case onlyGrows || !j.free(c):
		return append(refusals, j.judgeChange(c, all)...)
	}
	return refusals
}

// The method "free" reports whether a set is so small before and after a change that the guard does not judge the
// change.
func (b *Bounds) free(c *Change) bool { return max(c.Before, c.After) < b.own(c.Set).FreeBelow }

// judgeZone judges a time zone set that is too small for the other limits. judgeZone refuses a change in which the set
// vanishes or becomes empty. judgeZone also refuses a change in which most users of the set lose their time zone,
// because their local time would become unknown.
func (j *setJudge) judgeZone(c *Change) []string {
	switch {
	case c.State == Vanishes || c.State == empties:
		return j.judgeChange(c, nil)
	case 2*c.Removed <= c.Before:
		return nil
	}
	was := j.before.Sets[slices.IndexFunc(j.before.Manifest.Sets, func(s segments.Set) bool { return s.Name == c.Set })]
	users, _, inZones := bitmap.Unions([]*bitmap.Bitmap{was}, j.zones)
	if lost := users - inZones; 2*lost > users {
		return []string{fmt.Sprintf("%s loses most of its users: %d of %d are in no time zone any more", c.What(), lost,
			users)}
	}
	return nil
}

// The method "week" returns the reasons for which the guard refuses the total change of a set within a week.
func (j *setJudge) week(generation string, c *Change) (refusals []string) {
	loss, onlyGrows := j.directions[c.Set].maxLoss()
	switch {
	case onlyGrows && (c.State == changed || c.State == fills):
		refusals = judgeLoss(c, usualWeek*loss, " since "+generation, " in a week")
		return append(refusals, j.judgeGrowth(c, j.maxWeekChange(c.Set), " since "+generation, " in a week")...)
	case onlyGrows || !j.free(c):
		return j.judgeDrift(generation, c)
	}
	return nil
}

// judgeGrowth returns a refusal if too many users join a set that only grows. The limit is a percentage of all users
// and not of the set's users, because a small set may rightly double. For example, a list of four users may get five
// more. If the configuration has a limit for this set, judgeGrowth applies this limit as a percentage of the set's own
// users.
func (j *setJudge) judgeGrowth(c *Change, allowed float64, since, within string) []string {
	whole, of := c.Before, fmt.Sprintf("its %d users", c.Before)
	if 100*float64(c.Added) > allowed*float64(whole) && j.own(c.Set).MaxChange == nil {
		whole = j.everybody()
		of = fmt.Sprintf("all %d users", whole)
	}
	if 100*float64(c.Added) <= allowed*float64(whole) {
		return nil
	}
	return []string{fmt.Sprintf("%s grows by %d users%s, %s %% of %s: at most %s %% is allowed%s",
		c.What(), c.Added, since, segments.PercentAbove(percent(c.Added, whole), allowed), of,
		segments.BoundText(allowed), within)}
}

// judgeLoss returns a refusal if too many users leave a set that only grows.
func judgeLoss(c *Change, allowed float64, since, within string) []string {
	if float64(c.Removed)*100 <= allowed*float64(c.Before) {
		return nil
	}
	text := fmt.Sprintf("%s only grows, and %d of its %d users leave%s, such as %s", c.What(), c.Removed, c.Before,
		since, c.LeftText())
	if allowed > 0 {
		text += fmt.Sprintf(": at most %s %% may%s", segments.BoundText(allowed), within)
	}
	return []string{text}
}

func list(ids []uint32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
}
