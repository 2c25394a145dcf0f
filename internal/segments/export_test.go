package segments

import (
	"context"
	"strconv"
	"strings"

	"capper/internal/objects"
)

// Refresh checks the source once, like Run.
func (r *Refresher) Refresh(ctx context.Context) error { return r.refresh(ctx, r.cfg.Require) }

// WrapCache wraps the location of a refresher's cache.
func (r *Refresher) WrapCache(wrap func(objects.Location) objects.Location) {
	r.cache.at = wrap(r.cache.at)
}

// SaveInCache stores a generation as the cached one of a source.
func SaveInCache(ctx context.Context, dir, source string, g *Generation) error {
	return newCache(dir, source).save(ctx, g)
}

// LoadFromCache reads the cached generation from a location.
func LoadFromCache(ctx context.Context, at objects.Location) (*Generation, error) {
	return (&cache{at: at}).load(ctx, nil)
}

// ParseManifest decodes and checks a manifest.
func ParseManifest(generation string, raw []byte) (*Manifest, error) {
	return parseManifest(generation, raw)
}

// NameOf returns the name that m has according to its content.
func NameOf(m *Manifest) string { return m.name() }

// SumOf returns the SHA-256 of the encoded manifest.
func SumOf(m *Manifest) string { return m.sum() }

// ParseAnyName parses a manifest under the name that matches its content, so that a test reaches the
// checks after the check of the name. renamed is the parsed document.
func ParseAnyName(raw []byte) (m *Manifest, renamed []byte, err error) {
	var any Manifest
	if err := decodeDocument(raw, &any, newestFormatVersion); err != nil {
		return nil, nil, err
	}
	renamed = []byte(strings.Replace(string(raw), strconv.Quote(any.Generation), strconv.Quote(any.name()), 1))
	m, err = parseManifest(any.name(), renamed)
	return m, renamed, err
}

// ParseAsOf decodes a manifest like a program that knows only the formats up to newest.
func ParseAsOf(newest int, raw []byte) error {
	var any Manifest
	return decodeDocument(raw, &any, newest)
}

// CacheOf returns the location of a refresher's cache.
func CacheOf(r *Refresher) objects.Location { return r.cache.at }
