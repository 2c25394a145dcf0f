package segments

import (
	"context"

	"capper/internal/objects"
)

// Refresh looks at the source once, as Run does.
func (r *Refresher) Refresh(ctx context.Context) error { return r.refresh(ctx, r.cfg.Require) }

// WrapCache puts something between a refresher and its cache.
func (r *Refresher) WrapCache(wrap func(objects.Location) objects.Location) {
	r.cache.at = wrap(r.cache.at)
}

// SaveInCache makes a generation the cached one of a source.
func SaveInCache(ctx context.Context, dir, source string, g *Generation) error {
	return newCache(dir, source).save(ctx, g)
}

// LoadFromCache reads what a cache at this location would.
func LoadFromCache(ctx context.Context, at objects.Location) (*Generation, error) {
	return (&cache{at: at}).load(ctx, nil)
}

// ParseManifest decodes and checks a manifest.
func ParseManifest(generation string, raw []byte) (*Manifest, error) {
	return parseManifest(generation, raw)
}

// NameOf is the name that the content of m has.
func NameOf(m *Manifest) string { return m.name() }

// SumOf is the SHA-256 of the manifest as it is stored.
func SumOf(m *Manifest) string { return m.sum() }
