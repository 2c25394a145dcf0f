package segments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Listing is one generation of a location.
type Listing struct {
	Generation string    `json:"generation"`
	Live       bool      `json:"live"`
	StoredAt   time.Time `json:"stored_at"` // when the manifest was stored
	// Manifest is nil when it cannot be read; Fault says why.
	Manifest *Manifest `json:"manifest,omitempty"`
	Fault    string    `json:"fault,omitempty"`
}

// List returns all generations of a location, the newest first. A damaged
// manifest is a Fault of its row. The live generation that current.json names
// is listed even if its manifest is gone.
func List(ctx context.Context, store Store) ([]Listing, error) {
	current, _, err := readLive(ctx, store, "")
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	live := current.Generation
	objects, err := store.List(ctx, generationsPrefix)
	if err != nil {
		return nil, err
	}
	var list []Listing
	for _, o := range objects {
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, generationsPrefix), generationSuffix)
		if generationRule.MatchString(name) && manifestKey(name) == o.Key {
			list = append(list, Listing{Generation: name, Live: name == live, StoredAt: o.ChangedAt})
		}
	}
	if live != "" && !slices.ContainsFunc(list, func(l Listing) bool { return l.Live }) {
		list = append(list, Listing{Generation: live, Live: true})
	}
	inParallel(len(list), func(i int) {
		l := &list[i]
		var err error
		if l.Live {
			l.Manifest, err = current.manifest(ctx, store)
		} else {
			l.Manifest, err = ReadManifest(ctx, store, l.Generation)
		}
		if err != nil {
			l.Fault = err.Error()
		}
	})
	slices.SortFunc(list, func(a, b Listing) int { return strings.Compare(b.Generation, a.Generation) })
	return list, ctx.Err()
}

// Newest is the name of the newest generation of a location, live or not; ""
// when there is none.
func Newest(ctx context.Context, store Store) (string, error) {
	list, err := List(ctx, store)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Generation, nil
}

// Garbage is what nobody needs any more at a location.
type Garbage struct {
	Live        string   `json:"live"`
	Kept        []string `json:"kept"`    // generations, the newest first
	Generations []string `json:"removed"` // generations to remove, the newest first
	Objects     []Object `json:"objects"` // to remove, manifests first
	SizeBytes   int64    `json:"size_bytes"`
}

// FindGarbage finds what can go: generations beyond the keep newest, and
// bitmaps that no remaining generation uses. The live generation stays, and so
// does everything that was stored less than grace ago: it may belong to a
// publish that is under way. It removes nothing.
func FindGarbage(ctx context.Context, store Store, keep int, grace time.Duration, now time.Time) (*Garbage, error) {
	list, err := List(ctx, store)
	if err != nil {
		return nil, err
	}
	g := &Garbage{}
	used := map[string]bool{}
	for i, l := range list {
		young := now.Sub(l.StoredAt) < grace
		if i >= keep && !l.Live && !young {
			g.Generations = append(g.Generations, l.Generation)
			continue
		}
		if l.Manifest == nil {
			return nil, fmt.Errorf("generation %s is to stay, but which bitmaps it uses is not known: %s", l.Generation, l.Fault)
		}
		if l.Live {
			g.Live = l.Generation
		}
		g.Kept = append(g.Kept, l.Generation)
		for _, s := range l.Manifest.Segments {
			used[s.Key] = true
		}
	}
	if g.Live == "" && len(list) > 0 {
		return nil, errors.New("no generation is live: nothing is removed until one is")
	}
	return g, g.collect(ctx, store, used, now.Add(-grace))
}

// collect finds the objects: the manifests of the generations, then whatever
// is old and not used. Objects that this package did not name are left alone.
func (g *Garbage) collect(ctx context.Context, store Store, used map[string]bool, before time.Time) error {
	for _, prefix := range []string{generationsPrefix, bitmapsPrefix, tempPrefix} {
		objects, err := store.List(ctx, prefix)
		if err != nil {
			return err
		}
		for _, o := range objects {
			name := strings.TrimPrefix(o.Key, prefix)
			mine := strings.HasPrefix(o.Key[strings.LastIndexByte(o.Key, '/')+1:], tempPrefix)
			switch prefix {
			case generationsPrefix:
				mine = mine || slices.Contains(g.Generations, strings.TrimSuffix(name, generationSuffix))
			case bitmapsPrefix:
				mine = mine || sha256Rule.MatchString(strings.TrimSuffix(name, bitmapSuffix)) && !used[o.Key]
			}
			if mine && o.ChangedAt.Before(before) {
				g.Objects = append(g.Objects, o)
				g.SizeBytes += o.SizeBytes
			}
		}
	}
	return nil
}

// Remove removes the garbage, unless the live generation has changed since it
// was found.
func (g *Garbage) Remove(ctx context.Context, store Store) error {
	if live, _, err := readLive(ctx, store, ""); err != nil && !(errors.Is(err, ErrNotFound) && g.Live == "") {
		return err
	} else if live.Generation != g.Live {
		return fmt.Errorf("%w: %s is live now, it was %s", ErrLostRace, live.Generation, g.Live)
	}
	for _, o := range g.Objects {
		if err := store.Delete(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}
