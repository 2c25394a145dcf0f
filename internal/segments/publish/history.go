package publish

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// Listing is one generation of a location.
type Listing struct {
	Generation string    `json:"generation"`
	Live       bool      `json:"live"`
	StoredAt   time.Time `json:"stored_at"` // when the manifest was stored
	// WithdrawnAt is when it was rolled back from, unless its content went live again since.
	WithdrawnAt *time.Time `json:"withdrawn_at,omitempty"`
	// CheckedAt is when a build last published it, or found its segments live; only of the generation
	// that the last build did that with, which a rollback may have withdrawn since.
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Hold is of the live generation: while publishing is on hold it stays live.
	Hold *Hold `json:"hold,omitempty"`
	// Manifest is nil when it cannot be read; Fault says why.
	Manifest *segments.Manifest `json:"manifest,omitempty"`
	Fault    string             `json:"fault,omitempty"`
}

// List returns all generations of a location, the newest first. A damaged
// manifest is a Fault of its row. The live generation that current.json names
// is listed even if its manifest is gone.
func List(ctx context.Context, at objects.Source) ([]Listing, error) {
	current, _, err := segments.ReadPointer(ctx, at, "")
	if err != nil && !errors.Is(err, objects.ErrNotFound) {
		return nil, err
	}
	controls, err := ReadControls(ctx, at)
	if err != nil {
		return nil, err
	}
	checked, err := segments.ReadChecked(ctx, at)
	if err != nil {
		return nil, err
	}
	live := current.Generation
	stored, err := at.List(ctx, segments.GenerationsPrefix)
	if err != nil {
		return nil, err
	}
	var list []Listing
	for _, o := range stored {
		if name, ok := segments.GenerationOf(o.Key); ok {
			list = append(list, Listing{Generation: name, Live: name == live, StoredAt: o.ChangedAt})
		}
	}
	if live != "" && !slices.ContainsFunc(list, func(l Listing) bool { return l.Live }) {
		list = append(list, Listing{Generation: live, Live: true})
	}
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
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(b.Generation, a.Generation) })
	return list, ctx.Err()
}

// Newest is the name of the newest generation of a location, live or not; ""
// when there is none.
func Newest(ctx context.Context, at objects.Source) (string, error) {
	list, err := List(ctx, at)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Generation, nil
}
