package publish

import (
	"fmt"
	"strings"

	"capper/internal/segments"
)

// judgeSizes returns a refusal for each segment and set whose number of users is outside its limits.
func (b *Bounds) judgeSizes(c *Candidate) (refusals []string) {
	for i, name := range c.Names {
		refusals = append(refusals, b.judgeSize("segment", name, c.Bitmaps[i].Cardinality())...)
	}
	for _, s := range c.Sets {
		refusals = append(refusals, b.judgeSize("set", s.Name, s.Bitmap.Cardinality())...)
	}
	return refusals
}

func (b *Bounds) judgeSize(kind, name string, users uint64) (refusals []string) {
	own := b.own(name)
	if own.MinUsers != nil && users < *own.MinUsers {
		refusals = append(refusals, fmt.Sprintf("%s %q has %d users, at least %d are expected (min_users)", kind, name,
			users, *own.MinUsers))
	}
	if own.MaxUsers != nil && users > *own.MaxUsers {
		refusals = append(refusals, fmt.Sprintf("%s %q has %d users, at most %d are expected (max_users)", kind, name,
			users, *own.MaxUsers))
	}
	return refusals
}

// judgeChange returns the reasons for which the change of one segment or set needs an operator's approval. Reasons for
// an approval are that the segment or set appears, vanishes, becomes empty or gets its first users, and that too many
// users join or leave. The argument "all" of judgeChange contains the changes of all segments, or of all sets, for
// hints about similar names.
func (b *Bounds) judgeChange(c *Change, all []Change) (refusals []string) {
	refuse := func(format string, args ...any) {
		refusals = append(refusals, fmt.Sprintf(format, args...))
	}
	allowed, meant := b.maxChange(c.Name()), b.mayAppear(c.Name())
	switch {
	case c.State == Vanishes, c.State == empties:
		refuse("%s %s (it has %d users now)", c.What(), c.State, c.Before)
	case c.State == appears && !meant:
		refuse("%s is new, with %d users%s: use --allow-new %s if this is intended", c.What(), c.After, similar(c, all),
			c.Name())
	case c.State == fills && !meant:
		refuse("%s has no users now and would have %d: use --allow-new %s if this is intended", c.What(), c.After,
			c.Name())
	case c.Percent > allowed:
		refuse("%s changes by %s %%, but at most %s %% is allowed: %d users join and %d leave, of %d users", c.What(),
			segments.PercentAbove(c.Percent, allowed), segments.BoundText(allowed), c.Added, c.Removed, c.Before)
	}
	return refusals
}

// judgeDrift returns a refusal if one segment or set has changed too much since the generation (published version) of a
// week ago. judgeDrift ignores segments and sets that became empty or got their first users within the week, because
// the guard judged such changes in an earlier publish.
func (b *Bounds) judgeDrift(generation string, c *Change) []string {
	allowed := b.maxWeekChange(c.Name())
	if c.State != changed || c.Percent <= allowed {
		return nil
	}
	return []string{fmt.Sprintf("%s changes by %s %% since %s, at most %s %% is allowed in a week: %d users added, "+
		"%d removed, %d before",
		c.What(), segments.PercentAbove(c.Percent, allowed), generation, segments.BoundText(allowed), c.Added,
		c.Removed, c.Before)}
}

func (b *Bounds) judgeFall(n NoSegment, since string) []string {
	allowed := orElse(b.MaxUnassigned, b.MaxChange)
	if n.Percent <= allowed {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d users are in no segment%s and get the default limits: that is %s %%, but "+
		"at most %s %% is allowed",
		n.Fall, n.Before, since, segments.PercentAbove(n.Percent, allowed), segments.BoundText(allowed))}
}

// The function "similar" returns a hint for an error text if a live segment or set has the same name except for upper
// and lower case.
func similar(is *Change, all []Change) string {
	for _, c := range all {
		if c.Name() != is.Name() && c.State != appears && strings.EqualFold(c.Name(), is.Name()) {
			return fmt.Sprintf(" (%q is live and differs only by case)", c.Name())
		}
	}
	return ""
}
