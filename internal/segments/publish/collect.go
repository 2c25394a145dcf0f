package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// The type Garbage describes the objects at a location that the command gc may remove.
type Garbage struct {
	Live        string           `json:"live"`
	Kept        []string         `json:"kept"`    // generations that stay, newest first
	Generations []string         `json:"removed"` // generations to remove, newest first
	Objects     []objects.Object `json:"objects"` // to remove, manifests first
	SizeBytes   int64            `json:"size_bytes"`
}

// A Collector (command gc) finds and removes unneeded objects: all generations (published versions) except the newest
// (field Keep), and bitmaps and dictionaries that no remaining generation uses. A Collector never removes the live
// generation, or an object that was stored less than Grace ago.
type Collector struct {
	Location objects.Location
	Keep     int // at least 1
	Grace    time.Duration
	Clock    func() time.Time // nil is time.Now
	// Lease is the maximum time for which publishers wait for a Collector (command gc) that crashed while it removed
	// objects. Remove needs a value above 0.
	Lease time.Duration
}

// minTempAge is the minimum age at which a Collector (command gc) removes a temporary file. If a temporary file is
// younger, a publisher may still be writing it. No generation (published version) refers to a temporary file, so only
// the file's age protects it from removal.
const minTempAge = 24 * time.Hour

// Find returns the objects that Remove would remove, and removes nothing.
func (c *Collector) Find(ctx context.Context) (*Garbage, error) {
	now := time.Now
	if c.Clock != nil {
		now = c.Clock
	}
	list, err := List(ctx, c.Location)
	if err != nil {
		return nil, err
	}
	g := &Garbage{}
	used := map[string]bool{}
	before := now().Add(-c.Grace)
	for i, l := range list {
		if i >= c.Keep && !l.Live && l.StoredAt.Before(before) {
			g.Generations = append(g.Generations, l.Generation)
			continue
		}
		if l.Manifest == nil {
			return nil, fmt.Errorf(
				"gc must keep generation (published version) %s, but cannot read the list of its files: %s",
				l.Generation, l.Fault)
		}
		if l.Live {
			g.Live = l.Generation
		}
		g.Kept = append(g.Kept, l.Generation)
		for _, s := range l.Manifest.Entries() {
			used[s.Key] = true
		}
		for _, o := range l.Manifest.Objects() {
			used[o.Key] = true
		}
	}
	if g.Live == "" && len(list) > 0 {
		return nil, errors.New(
			"no stored generation (published version) is in use: gc removes nothing until a generation is published")
	}
	return g, g.collect(ctx, c.Location, used, before, now().Add(-max(c.Grace, minTempAge)))
}

// The method "collect" adds the objects that a Collector may remove to g: first the manifests of old generations
// (published versions), then old and unused objects. The method "collect" ignores objects whose names package publish
// does not create.
func (g *Garbage) collect(ctx context.Context, at objects.Location, used map[string]bool, before,
	tempBefore time.Time) error {
	for _, prefix := range []string{segments.GenerationsPrefix, segments.BitmapsPrefix, segments.DictionariesPrefix,
		objects.TempPrefix} {
		found, err := at.List(ctx, prefix)
		if err != nil {
			return err
		}
		for _, o := range found {
			mine := false
			switch {
			case strings.HasPrefix(o.Key[strings.LastIndexByte(o.Key, '/')+1:], objects.TempPrefix):
				mine = o.ChangedAt.Before(tempBefore)
			case prefix == segments.GenerationsPrefix:
				name, ok := segments.GenerationOf(o.Key)
				mine = ok && slices.Contains(g.Generations, name)
			case prefix == segments.BitmapsPrefix:
				mine = segments.IsBitmapKey(o.Key) && !used[o.Key]
			case prefix == segments.DictionariesPrefix:
				mine = (segments.IsDictionaryKey(o.Key) || segments.IsBackKey(o.Key)) && !used[o.Key]
			}
			if mine && o.ChangedAt.Before(before) {
				g.Objects = append(g.Objects, o)
				g.SizeBytes += o.SizeBytes
			}
		}
	}
	return nil
}

// Remove finds and removes unneeded objects. While it removes objects, Remove holds a lease (the object gc.json), and
// publishers wait until this lease ends. If current.json changes, Remove stops with objects.ErrLostRace. If another
// Collector (command gc) is running, Remove returns errCollecting. The result of Remove lists the removed objects, even
// after an error in the middle of the removal.
func (c *Collector) Remove(ctx context.Context) (*Garbage, error) {
	if c.Lease <= 0 {
		return nil, fmt.Errorf("lease %s: must be more than 0", c.Lease)
	}
	if _, _, err := segments.ReadPointer(ctx, c.Location, ""); errors.Is(err, segments.ErrNothingLive) {
		found, err := c.Find(ctx)
		if err == nil {
			found.Objects, found.SizeBytes = nil, 0 // without current.json, publishers cannot be stopped
		}
		return found, err
	}
	l, err := takeLease(ctx, c.Location, c.Lease)
	if err != nil {
		return nil, err
	}
	removed, err := c.removeUnder(ctx, l)
	if endErr := l.end(context.WithoutCancel(ctx)); err == nil {
		err = endErr
	}
	return removed, err
}

// removeUnder rewrites current.json with other bytes (the fence), so that running publishers start again and wait for
// the Collector's lease (right to remove objects). removeUnder then reads the live generation (published version that
// current.json names), and removes unneeded objects.
func (c *Collector) removeUnder(ctx context.Context, l *lease) (*Garbage, error) {
	tag, err := fence(ctx, c.Location)
	if err != nil {
		return nil, err
	}
	found, err := c.Find(ctx)
	if err != nil {
		return nil, err
	}
	removed := &Garbage{Live: found.Live, Kept: found.Kept}
	for _, o := range found.Objects {
		if err := c.removeOne(ctx, l, tag, o); err != nil {
			return removed, err
		}
		removed.Objects = append(removed.Objects, o)
		removed.SizeBytes += o.SizeBytes
		if name, ok := segments.GenerationOf(o.Key); ok {
			removed.Generations = append(removed.Generations, name)
		}
	}
	return removed, nil
}

func (c *Collector) removeOne(ctx context.Context, l *lease, tag string, o objects.Object) error {
	limited, cancel, err := l.use(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	switch _, _, err := c.Location.ReadTagged(limited, segments.CurrentKey, tag); {
	case errors.Is(err, objects.ErrNotModified):
		return l.judge(ctx, limited, c.Location.Delete(limited, o.Key))
	case err == nil, errors.Is(err, objects.ErrNotFound):
		return fmt.Errorf("%w: object %s has changed, so the garbage collection stopped and kept the remaining objects",
			objects.ErrLostRace, segments.CurrentKey)
	default:
		return l.judge(ctx, limited, err)
	}
}
