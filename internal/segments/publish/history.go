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

// A Listing describes one generation (published version) of a location in a list for display.
type Listing struct {
	Generation string    `json:"generation"`
	Live       bool      `json:"live"`
	StoredAt   time.Time `json:"stored_at"` // modification time of the manifest
	// WithdrawnAt is the time of the rollback that replaced the generation, unless the content went live again later.
	WithdrawnAt *time.Time `json:"withdrawn_at,omitempty"`
	// CheckedAt is the time at which the last complete build published this generation, or built the same content
	// again. Only the generation of the last complete build has CheckedAt, even after a later rollback.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// While publishing is on hold, the Listing of the live generation has the Hold (stop of all publishing).
	Hold *Hold `json:"hold,omitempty"`
	// If reading the manifest fails, Manifest is nil, and Fault describes the reason.
	Manifest *segments.Manifest `json:"manifest,omitempty"`
	Fault    string             `json:"fault,omitempty"`
}

// List returns all generations (published versions) of a location, newest first. If the manifest of a generation is
// damaged, the field Fault of the generation's Listing describes the damage. Even if the manifest of the live
// generation is missing, the list includes the live generation.
func List(ctx context.Context, at objects.Source) ([]Listing, error) {
	list, _, err := listNewest(ctx, at, math.MaxInt)
	return list, err
}

// listNewest returns the newest generations (published versions), at most as many as the argument "most", and the live
// generation. If the location has further generations, the result "more" is true.
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

// The function "stored" returns the generations (published versions) of a location, newest first. The function "stored"
// lists the location's objects, but reads no manifests.
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

// The function "newest" returns the first elements of a list of generations (published versions), at most as many as
// the argument "most", and the live generation. If the list has further generations, the result "more" is true.
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

// The function Newest returns the name of the newest generation (published version) of a location, live or not. If the
// location has no generation, Newest returns "". Newest lists the location's objects, but reads no objects.
func Newest(ctx context.Context, at objects.Source) (string, error) {
	list, err := stored(ctx, at, "")
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Generation, nil
}
