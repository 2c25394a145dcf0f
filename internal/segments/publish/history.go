package publish

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Listing describes one generation of a location in a list for display.
type Listing struct {
	Generation string    `json:"generation"`
	Live       bool      `json:"live"`
	StoredAt   time.Time `json:"stored_at"` // modification time of the manifest
	// WithdrawnAt is when the generation was rolled back, unless its content went live again later.
	WithdrawnAt *time.Time `json:"withdrawn_at,omitempty"`
	// CheckedAt is when the last complete build published this generation, or found that it equals the result of the
	// build. Only the generation of the last complete build has CheckedAt, even if the generation was rolled back
	// later.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Hold is set on the live generation while publishing is on hold.
	Hold *Hold `json:"hold,omitempty"`
	// Manifest is nil if it cannot be read; Fault has the reason.
	Manifest *segments.Manifest `json:"manifest,omitempty"`
	Fault    string             `json:"fault,omitempty"`
}

// List returns all generations of a location, newest first. If the manifest of a generation is damaged, the field Fault
// of the generation's Listing has the reason. List includes the live generation even if its manifest is missing.
func List(ctx context.Context, at objects.Source) ([]Listing, error) {
	list, _, err := listNewest(ctx, at, math.MaxInt)
	return list, err
}

// listNewest returns at most "most" generations, the newest first, and the live generation. The result "more" of
// listNewest is true if the location has further generations, which listNewest does not return.
func listNewest(ctx context.Context, at objects.Source, most int) (list []Listing, more bool, err error) {
	current, _, err := segments.ReadPointer(ctx, at, "")
	if err != nil && !errors.Is(err, objects.ErrNotFound) {
		return nil, false, err
	}
	controls, err := ReadControls(ctx, at)
	if err != nil {
		return nil, false, err
	}
	checked, err := segments.ReadChecked(ctx, at)
	if err != nil {
		return nil, false, err
	}
	if list, err = stored(ctx, at, current.Generation); err != nil {
		return nil, false, err
	}
	list, more = newest(list, most)
	parallel.OnAllCores(len(list), func(i int) {
		l := &list[i]
		var err error
		if l.Live {
			l.Manifest, err = current.ReadManifest(ctx, at)
		} else {
			l.Manifest, err = segments.ReadManifest(ctx, at, l.Generation)
		}
		if err != nil {
			l.Fault = err.Error()
		}
		controls.mark(l)
		if checked.Generation == l.Generation {
			l.CheckedAt = &checked.CheckedAt
		}
	})
	return list, more, ctx.Err()
}

// stored returns the generations of segments that a location has, newest first. stored lists
// the location's objects, but reads no manifests.
func stored(ctx context.Context, at objects.Source, live string) (list []Listing, err error) {
	stored, err := at.List(ctx, segments.GenerationsPrefix)
	if err != nil {
		return nil, err
	}
	for _, o := range stored {
		if name, ok := segments.GenerationOf(o.Key); ok {
			list = append(list, Listing{Generation: name, Live: name == live, StoredAt: o.ChangedAt})
		}
	}
	if live != "" && !slices.ContainsFunc(list, func(l Listing) bool { return l.Live }) {
		list = append(list, Listing{Generation: live, Live: true})
	}
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(b.Generation, a.Generation) })
	return list, nil
}

// newest returns the first elements of a list of generations, at most "most" of them, and the live
// generation.
func newest(list []Listing, most int) (first []Listing, more bool) {
	if len(list) <= most {
		return list, false
	}
	first = list[:most:most]
	if i := slices.IndexFunc(list[most:], func(l Listing) bool { return l.Live }); i >= 0 {
		first = append(first, list[most+i])
	}
	return first, true
}

// Newest returns the name of the newest generation of a location, live or not, or "" if there is none. Newest finds the
// name in the list of the location's objects, and reads none of these objects.
func Newest(ctx context.Context, at objects.Source) (string, error) {
	list, err := stored(ctx, at, "")
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Generation, nil
}
