package guard

import (
	"fmt"
	"strings"

	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// direction is whether a set may lose users: as was said when it went live, and as is said now.
type direction struct{ was, is publish.Growth }

// directionsOf are those of all sets of a candidate and of what it is compared with.
func directionsOf(c *publish.Candidate, before *segments.Manifest) map[string]*direction {
	of := map[string]*direction{}
	for _, s := range before.Sets {
		was := publish.Growth{Said: true, OnlyGrows: s.OnlyGrows, MaxLoss: s.MaxLoss}
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

// maxLoss is the stricter of what was said and what is; ok is false where the set may lose users.
func (d *direction) maxLoss() (percent float64, ok bool) {
	switch {
	case d.was.OnlyGrows && d.is.OnlyGrows:
		return min(d.was.MaxLoss, d.is.MaxLoss), true
	case d.was.OnlyGrows:
		return d.was.MaxLoss, true
	}
	return d.is.MaxLoss, d.is.OnlyGrows
}

// lifted says that a set is to lose more users than was said when it went live.
func (d *direction) lifted() string {
	switch {
	case !d.was.OnlyGrows || d.is.OnlyGrows && d.is.MaxLoss <= d.was.MaxLoss:
		return ""
	case !d.is.OnlyGrows:
		return fmt.Sprintf("only grows (at most %s %% of its users may leave), and is not to any more", round(d.was.MaxLoss))
	}
	return fmt.Sprintf("only grows: at most %s %% of its users may leave, and now it is to be %s %%", round(d.was.MaxLoss), round(d.is.MaxLoss))
}

// judgeSets says what of the changes of sets is beyond the bounds: as of segments, and
// users who leave a set that only grows, also where this build does not say so.
func (b *Bounds) judgeSets(changes []publish.Change, directions map[string]*direction) (refusals []string) {
	for _, c := range changes {
		d := directions[c.Set]
		loss, onlyGrows := d.maxLoss()
		if why := d.lifted(); why != "" && c.State != publish.Vanishes {
			refusals = append(refusals, c.What()+" "+why)
		}
		if onlyGrows && c.State == publish.Changed {
			refusals = append(refusals, judgeLoss(&c, loss, "", "")...)
		}
		if onlyGrows || !b.free(&c) {
			refusals = append(refusals, b.judgeChange(&c, changes)...)
		}
	}
	return refusals
}

// free reports whether a set is too small for its changes to say something.
func (b *Bounds) free(c *publish.Change) bool { return max(c.Before, c.After) < b.own(c.Set).FreeBelow }

// judgeSetsWeek says the same of the drift since a week ago.
func (b *Bounds) judgeSetsWeek(generation string, drift []publish.Change, directions map[string]*direction) (refusals []string) {
	for _, c := range drift {
		loss, onlyGrows := directions[c.Set].maxLoss()
		if onlyGrows && c.State == publish.Changed {
			refusals = append(refusals, judgeLoss(&c, usualWeek*loss, " since "+generation, " in a week")...)
		}
		if onlyGrows || !b.free(&c) {
			refusals = append(refusals, b.judgeDrift(generation, &c)...)
		}
	}
	return refusals
}

// judgeLoss says how many users leave a set that only grows, where it is more than may.
func judgeLoss(c *publish.Change, allowed float64, since, within string) []string {
	if float64(c.Removed)*100 <= allowed*float64(c.Before) {
		return nil
	}
	text := fmt.Sprintf("%s only grows, and %d of its %d users leave%s, such as %s", c.What(), c.Removed, c.Before, since, list(c.Left))
	if allowed > 0 {
		text += fmt.Sprintf(": at most %s %% may%s", round(allowed), within)
	}
	return []string{text}
}

func list(ids []uint32) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
}
