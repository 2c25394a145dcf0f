package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/segments"
)

// notYetFor is the longest wait before a retry that the server recommends to a caller, if the service has not yet
// loaded the requested generation. If a call names an unknown segments generation (published version), the service
// immediately looks for this generation, and usually loads it soon.
const notYetFor = 5 * time.Second

// A Pin function returns the segments generation (published version) with the given name, and keeps ("pins") the
// generation in memory for later calls. If the name is "", a Pin function returns the current segments generation
// without pinning it. The error of a Pin function is a *segments.GoneError or a *segments.NotYetError. Pin is safe for
// concurrent use.
type Pin func(generation string) (*segments.Snapshot, error)

// The method Generation returns the segments generation (published version) with the given name. If the name is "",
// Generation returns the current segments generation. The argument "field" is the name of the request field that
// contained the generation name.
func (p Pin) Generation(field, name string) (*segments.Snapshot, error) {
	s, err := p(name)
	if err == nil {
		return s, nil
	}
	if later := (*segments.NotYetError)(nil); errors.As(err, &later) {
		f := FieldFailure(api.CodeUnavailable, field, "%s; try again", strings.TrimPrefix(later.Error(), field+" "))
		f.RetryAfter = min(max(later.Interval, time.Second), notYetFor)
		return nil, f
	}
	if gone := (*segments.GoneError)(nil); !errors.As(err, &gone) || name == "" {
		f := NewFailure(api.CodeUnavailable, "no generation (published version) of the segments is loaded: "+
			"/v1/status shows the reason")
		f.Cause = err
		return nil, f
	}
	return nil, FieldFailure(api.CodeGone, field, "%s; start again with the generation in use",
		strings.TrimPrefix(clipped(err, name), field+" "))
}

// The method Pinned works like Generation, but also keeps the current segments generation (published version) in memory
// for later calls.
func (p Pin) Pinned(field, name string) (*segments.Snapshot, error) {
	s, err := p.Generation(field, name)
	if err == nil && name == "" {
		return p.Generation(field, s.Generation())
	}
	return s, err
}

// The function "clipped" returns the text of an error about a name that a caller sent. The text contains a long name
// only in shortened form.
func clipped(err error, name string) string {
	return strings.ReplaceAll(err.Error(), fmt.Sprintf("%q", name), fmt.Sprintf("%q", Clip([]byte(name))))
}

// SegmentList lists the segments and sets of a segments generation (published version) in the type of package api.
func SegmentList(s *segments.Snapshot) *api.Segments {
	list := &api.Segments{Generation: s.Generation(), CreatedAt: s.CreatedAt(), Segments: []api.SegmentInfo{}}
	for kind, sizes := range map[string][]segments.SegmentSize{api.KindSegment: s.Segments(), api.KindSet: s.Sets()} {
		for _, size := range sizes {
			list.Segments = append(list.Segments, api.SegmentInfo{Name: size.Name, Kind: kind, Users: size.Cardinality,
				SizeBytes: size.SizeBytes})
		}
	}
	slices.SortStableFunc(list.Segments, func(a, b api.SegmentInfo) int { return strings.Compare(a.Kind, b.Kind) })
	return list
}

// The function "meant" returns a hint for an error text: the existing name that is most similar to an unknown name.
func meant(name string, names []string) string {
	if nearest := audience.Nearest(name, names); nearest != "" {
		return fmt.Sprintf("; the nearest is %q", nearest)
	}
	return ""
}
