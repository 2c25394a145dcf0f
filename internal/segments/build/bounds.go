package build

import (
	"fmt"
	"math"
	"slices"
	"time"

	"capper/internal/segments/ingest"
	"capper/internal/segments/publish/guard"
)

// Bounds are a build file's bounds for all segments. They, like Columns, are
// exported for the YAML library, and checked by hand: it would make 3 of 3.7.
type Bounds struct {
	MaxChange     any `yaml:"max_change"`
	MaxWeekChange any `yaml:"max_week_change"`
	MaxUnassigned any `yaml:"max_unassigned"`
}

// OwnBounds are those of one segment.
type OwnBounds struct {
	MaxChange     any `yaml:"max_change"`
	MaxWeekChange any `yaml:"max_week_change"`
	MinUsers      any `yaml:"min_users"`
	MaxUsers      any `yaml:"max_users"`
}

func (o OwnBounds) any() bool {
	return o.MaxChange != nil || o.MaxWeekChange != nil || o.MinUsers != nil || o.MaxUsers != nil
}

// Expect is what an input must at least hold.
type Expect struct {
	MinFiles  any `yaml:"min_files"`
	MinRows   any `yaml:"min_rows"`
	NewerThan any `yaml:"newer_than"`
}

// bounds brings the bounds of a build file into the plan.
func (c *converter) bounds(d *document, into *Plan) {
	b := &into.Bounds
	if v := c.percent(d.General.MaxChange, "max_change"); v != nil {
		b.MaxChange = *v
	}
	b.MaxWeekChange = c.percent(d.General.MaxWeekChange, "max_week_change")
	b.MaxUnassigned = c.percent(d.General.MaxUnassigned, "max_unassigned")
	for i, name := range d.AllowNew {
		if !slices.Contains(into.Order, name) && !slices.ContainsFunc(d.Segments, func(r recipe) bool { return r.Name == name }) {
			c.fault("allow_new[%d]: %q is none of the segments", i, name)
		}
		b.New = append(b.New, name)
	}
	for i, flaw := range d.AllowFirst {
		if !slices.Contains(guard.Flaws, guard.Flaw(flaw)) {
			c.fault("allow_first[%d]: %q is none of %v", i, flaw, guard.Flaws)
		}
		b.AllowFirst = append(b.AllowFirst, guard.Flaw(flaw))
	}
	b.Of = map[string]guard.SegmentBounds{}
	for i, r := range d.Segments {
		b.Of[r.Name] = c.ownBounds(r.Own, fmt.Sprintf("segments[%d].", i))
	}
	for i, r := range d.Sets {
		if r.Own.any() {
			c.fault("sets[%d]: a set is not published, so it has no bounds such as max_change and min_users", i)
		}
	}
}

func (c *converter) ownBounds(own OwnBounds, at string) guard.SegmentBounds {
	users := func(v any, key string) *uint64 {
		if v == nil {
			return nil
		}
		n := uint64(c.whole(v, at+key))
		return &n
	}
	b := guard.SegmentBounds{
		MaxChange: c.percent(own.MaxChange, at+"max_change"), MaxWeekChange: c.percent(own.MaxWeekChange, at+"max_week_change"),
		MinUsers: users(own.MinUsers, "min_users"), MaxUsers: users(own.MaxUsers, "max_users"),
	}
	if b.MinUsers != nil && b.MaxUsers != nil && *b.MinUsers > *b.MaxUsers {
		c.fault("%smin_users: must not be above max_users, which is %d, got %d", at, *b.MaxUsers, *b.MinUsers)
	}
	return b
}

func (c *converter) expect(base ingest.Expect, own Expect, at string) ingest.Expect {
	if own.MinFiles != nil {
		base.MinFiles = c.whole(own.MinFiles, at+".min_files")
	}
	if own.MinRows != nil {
		base.MinRows = c.whole(own.MinRows, at+".min_rows")
	}
	if own.NewerThan != nil {
		text, _ := own.NewerThan.(string)
		age, err := time.ParseDuration(text)
		if err != nil || age <= 0 {
			c.fault("%s.newer_than: must be a duration such as 36h, got %v", at, own.NewerThan)
		}
		base.NewerThan = age
	}
	return base
}

// whole is a whole number from 0; nil is 0.
func (c *converter) whole(v any, at string) int64 {
	n, ok := v.(uint64)
	if v != nil && (!ok || n > math.MaxInt64) {
		c.fault("%s: must be a whole number from 0, got %v", at, v)
		return 0
	}
	return int64(n)
}

// percent is a percentage; nil stays nil.
func (c *converter) percent(v any, at string) *float64 {
	if v == nil {
		return nil
	}
	percent, err := guard.ParsePercent(fmt.Sprint(v))
	if err != nil {
		c.fault("%s: must be a percentage such as 20%%, got %v", at, v)
	}
	return &percent
}
