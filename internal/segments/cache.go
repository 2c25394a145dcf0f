package segments

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"capper/internal/bitmap"
)

// cache is the verified copy of the last good generation of one source: a
// directory store of the same layout. What is read from it is checked again
// like everything else.
type cache struct {
	store *directory
}

// newCache returns the cache of a source below dir, nil when dir is empty. Each location has its own
// folder: a service that is pointed elsewhere never starts with another location's segments.
func newCache(dir, location string) *cache {
	if dir == "" {
		return nil
	}
	return &cache{store: &directory{root: filepath.Join(dir, hash([]byte(location))[:16])}}
}

// load reads the cached generation.
func (c *cache) load(ctx context.Context) (*Generation, error) {
	if c == nil {
		return nil, errors.New("no cache directory is configured")
	}
	return ReadLiveGeneration(ctx, c.store)
}

// open returns the bitmap of a segment if the cache has it. A copy that is
// damaged is removed, so that save writes it anew.
func (c *cache) open(ctx context.Context, s *Segment) (*bitmap.Bitmap, bool) {
	if c == nil {
		return nil, false
	}
	b, err := readBitmap(ctx, c.store, s)
	if err != nil && !errors.Is(err, ErrNotFound) && ctx.Err() == nil {
		_ = c.store.Delete(ctx, s.Key) // if this fails too, save says why
	}
	return b, err == nil
}

// exists reports whether a generation has ever been cached.
func (c *cache) exists(ctx context.Context) bool {
	if c == nil {
		return false
	}
	err := c.store.hung.do(ctx, c.store.root, func() error {
		_, err := os.Stat(c.store.root)
		return err
	})
	return !errors.Is(err, fs.ErrNotExist)
}

// save makes g the cached generation, in the order of a publish, and removes
// what it no longer needs.
func (c *cache) save(ctx context.Context, g *Generation) error {
	if c == nil {
		return nil
	}
	return c.store.hung.do(ctx, c.store.root, func() error { return c.write(ctx, g) })
}

func (c *cache) write(ctx context.Context, g *Generation) error {
	keep := map[string]bool{manifestKey(g.Manifest.Generation): true}
	for i, b := range g.Bitmaps {
		key := g.Manifest.Segments[i].Key
		keep[key] = true
		if _, err := c.store.Put(ctx, key, b.Bytes()); err != nil {
			return err
		}
	}
	if err := c.store.write(manifestKey(g.Manifest.Generation), g.Manifest.encode()); err != nil {
		return err
	}
	if err := c.store.write(currentKey, encodePointer(g.Manifest)); err != nil {
		return err
	}
	return c.prune(keep)
}

func (c *cache) prune(keep map[string]bool) error {
	var faults []error
	for _, folder := range []string{bitmapsPrefix, generationsPrefix} {
		entries, err := os.ReadDir(c.store.path(folder))
		faults = append(faults, err)
		for _, e := range entries {
			if key := folder + e.Name(); !keep[key] && !strings.HasPrefix(e.Name(), tempPrefix) {
				faults = append(faults, os.Remove(c.store.path(key)))
			}
		}
	}
	return errors.Join(faults...)
}
