package whatif

import (
	"fmt"
	"maps"
	"slices"

	"capper/internal/capping"
)

// A Change is a change of one limit of a policy, such as a new maximum.
type Change struct {
	// Segment is the segment whose limit changes. If Segment is empty, the limit changes for every segment that has the
	// limit, and for users in no segment. The segment "default" stands for users in no segment.
	Segment string
	Limit   string // the name of the limit
	Max     int    // the new maximum; unused if Remove is set
	Remove  bool   // the limit does not apply
}

// ChangeError reports that a change of a limit is impossible in the policy, for example because the limit does not
// exist.
type ChangeError struct {
	Index   int    // the place of the change in its list
	Field   string // segment, limit or max
	Message string
}

func (e *ChangeError) Error() string {
	return fmt.Sprintf("change %d: %s: %s", e.Index, e.Field, e.Message)
}

// The function Changed returns a copy of the policy p with the changes, applied in their order. Two changes of the same
// limit of the same segment are an error. The policy p remains unchanged. The argument "segments" of Changed lists the
// names of the published segments. If a segment has no limits of its own, it has the default limits until a change
// names the segment. Every error of Changed is a *ChangeError.
func Changed(p *capping.Policy, segments []string, changes []Change) (*capping.Policy, error) {
	changed := *p
	changed.Default, changed.Segments = slices.Clone(p.Default), maps.Clone(p.Segments)
	if changed.Segments == nil {
		changed.Segments = map[string][]capping.Limit{}
	}
	for name, limits := range changed.Segments {
		changed.Segments[name] = slices.Clone(limits)
	}
	for i, c := range changes {
		same := func(d Change) bool { return d.Segment == c.Segment && d.Limit == c.Limit }
		if slices.ContainsFunc(changes[:i], same) {
			return nil, &ChangeError{i, "limit", fmt.Sprintf("%q is changed twice", c.Limit)}
		}
		if field, message := c.apply(&changed, segments); message != "" {
			return nil, &ChangeError{i, field, message}
		}
	}
	return &changed, nil
}

// The method apply applies the change to the policy. If the change is impossible in the policy, the result "message" is
// the reason, and "field" is the faulty field of the change.
func (c *Change) apply(p *capping.Policy, segments []string) (field, message string) {
	if !c.Remove && (c.Max < 0 || c.Max > capping.LogBound) {
		return "max", fmt.Sprintf("%d is not a number from 0 to %d", c.Max, capping.LogBound)
	}
	found := false
	change := func(limits []capping.Limit) []capping.Limit {
		at := slices.IndexFunc(limits, func(l capping.Limit) bool { return l.Name == c.Limit })
		if at < 0 {
			return limits
		}
		found = true
		if c.Remove {
			return slices.Delete(limits, at, at+1)
		}
		limits[at].Max = c.Max
		return limits
	}
	own, named := p.Segments[c.Segment]
	switch {
	case c.Segment == "":
		p.Default = change(p.Default)
		for name, limits := range p.Segments {
			p.Segments[name] = change(limits)
		}
	case c.Segment == defaultName:
		p.Default = change(p.Default)
	case named:
		p.Segments[c.Segment] = change(own)
	case slices.Contains(segments, c.Segment):
		if limits := change(slices.Clone(p.Default)); found {
			p.Segments[c.Segment] = limits
		}
	default:
		return "segment", fmt.Sprintf("%q is not a segment", c.Segment)
	}
	switch {
	case found:
		return "", ""
	case c.Segment == "":
		return "limit", fmt.Sprintf("no segment has a limit %q", c.Limit)
	}
	return "limit", fmt.Sprintf("the segment %s has no limit %q", c.Segment, c.Limit)
}
