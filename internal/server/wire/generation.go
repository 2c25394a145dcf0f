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

// notYetFor is the longest time after which a caller retries a call that names a future generation. The service looks
// for the generation at once and then reads it.
const notYetFor = 5 * time.Second

// Pin returns the segments generation with the given name and keeps it from being dropped. For the name "", Pin
// returns the current generation and pins nothing. The error is a *segments.GoneError or a *segments.NotYetError. Pin
// is safe for concurrent use.
type Pin func(generation string) (*segments.Snapshot, error)

// Generation returns the generation with the given name, or the current one for "". The argument field is the request
// field that named the generation.
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
		f := NewFailure(api.CodeUnavailable, "no generation of segments is loaded: /v1/status shows the reason")
		f.Cause = err
		return nil, f
	}
	return nil, FieldFailure(api.CodeGone, field, "%s; start again with the generation in use",
		strings.TrimPrefix(clipped(err, name), field+" "))
}

// Pinned returns the generation with the given name like Generation does, and pins the current generation too.
func (p Pin) Pinned(field, name string) (*segments.Snapshot, error) {
	s, err := p.Generation(field, name)
	if err == nil && name == "" {
		return p.Generation(field, s.Generation())
	}
	return s, err
}

// clipped returns the text of an error about a name that a caller sent, shortened to a bounded length.
func clipped(err error, name string) string {
	return strings.ReplaceAll(err.Error(), fmt.Sprintf("%q", name), fmt.Sprintf("%q", Clip([]byte(name))))
}

// SegmentList returns the segments and sets of a generation.
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

// meant returns a hint with the existing name that is most similar to the given one.
func meant(name string, names []string) string {
	if nearest := audience.Nearest(name, names); nearest != "" {
		return fmt.Sprintf("; the nearest is %q", nearest)
	}
	return ""
}
