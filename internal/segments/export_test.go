package segments

import (
	"context"
	"strconv"
	"strings"

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

// ParseAnyName parses a manifest under the name that its content has, so that a change
// of a byte is not all that is found; renamed is what was parsed.
func ParseAnyName(raw []byte) (m *Manifest, renamed []byte, err error) {
	var any Manifest
	if err := decodeDocument(raw, &any, AcceptedFormatVersion); err != nil {
		return nil, nil, err
	}
	renamed = []byte(strings.Replace(string(raw), strconv.Quote(any.Generation), strconv.Quote(any.name()), 1))
	m, err = parseManifest(any.name(), renamed)
	return m, renamed, err
}

// ParseAsOf decodes a manifest as a program does that knows the formats up to newest.
func ParseAsOf(newest int, raw []byte) error {
	var any Manifest
	return decodeDocument(raw, &any, newest)
}

// CacheOf is where a refresher keeps its copy.
func CacheOf(r *Refresher) objects.Location { return r.cache.at }
