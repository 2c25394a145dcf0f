package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"capper/internal/audit"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// Dropped lists the audit files that compactions removed from an audit location.
type Dropped struct {
	// Noted is true if compactions recorded the removed files. Noted is false if only an earlier version of capper has
	// written to the location.
	Noted bool
	of    map[string]audit.Dropped
}

// The method Through returns the highest number of an instance's audit files that a compaction removed, or 0 if no file
// was removed.
func (d *Dropped) Through(instance string) uint64 { return d.of[instance].Through }

// The method All yields each instance together with the instance's audit files that compactions removed.
func (d *Dropped) All() iter.Seq2[string, audit.Dropped] { return maps.All(d.of) }

// The method Dropped reads the list of the audit files that compactions removed from the audit location. The result
// "damaged" of Dropped holds a *FileError for each document that the archive cannot read.
func (a *Archive) Dropped(ctx context.Context) (d *Dropped, damaged []error, err error) {
	found, err := a.at.List(ctx, audit.DroppedPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list removed audit files: %w", err)
	}
	list, faults := make([]audit.Dropped, len(found)), make([]error, len(found))
	parallel.AtMost(readsAtOnce, len(found), func(i int) {
		if audit.IsDroppedKey(found[i].Key) {
			list[i], faults[i] = a.readDropped(ctx, found[i].Key)
		}
	})
	d = &Dropped{of: map[string]audit.Dropped{}}
	for i, one := range list {
		var about *FileError
		switch {
		case errors.As(faults[i], &about):
			damaged = append(damaged, faults[i])
		case faults[i] != nil && !errors.Is(faults[i], objects.ErrNotFound):
			return nil, nil, faults[i]
		case one.Instance != "":
			d.of[one.Instance] = one
		}
		d.Noted = d.Noted || found[i].Key == audit.DroppedKey("")
	}
	return d, damaged, nil
}

func (a *Archive) readDropped(ctx context.Context, key string) (audit.Dropped, error) {
	raw, err := a.at.Read(ctx, key, objects.MaxDocumentBytes)
	if err != nil {
		return audit.Dropped{}, fmt.Errorf("%s: %w", key, err)
	}
	d, err := audit.ParseDropped(key, raw)
	if err != nil {
		return d, &FileError{key, err}
	}
	return d, nil
}
