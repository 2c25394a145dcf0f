package segments

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/objects"
)

// A cache is a local copy of the last good generation (published version) of the segments from one source. With a
// cache, a service can start while the source is down. The cache directory has the same layout as the source. A service
// that reads from the cache checks all content again.
type cache struct {
	at objects.Location
}

// A mapper can map a file into memory. The type objects.Directory implements this interface.
type mapper interface {
	Map(ctx context.Context, key string, sizeBytes int64) (raw []byte, unmap func(), err error)
}

// newCache returns the cache of a source in a folder below dir. If dir is "", newCache returns nil. Each source has its
// own folder, so a service with a new source never starts with the segments of another source.
func newCache(dir, source string) *cache {
	if dir == "" {
		return nil
	}
	return &cache{at: objects.NewDirectory(filepath.Join(dir, Sum([]byte(source))[:16]))}
}

// The method "load" reads the cached generation (published version) of segments. If the function "require" rejects the
// manifest of this generation, "load" returns an error.
func (c *cache) load(ctx context.Context, require func(*Manifest) error) (*Generation, error) {
	if c == nil {
		return nil, errors.New("no directory for the local copy of the segments is configured")
	}
	m, err := ReadLiveManifest(ctx, c.at)
	if err == nil {
		err = m.fulfils(require)
	}
	if err != nil {
		return nil, err
	}
	g, err := readBitmaps(ctx, m, parallelReads, func(ctx context.Context, _ int, s *Segment) (*bitmap.Bitmap, error) {
		return readBitmap(ctx, c.at, s)
	})
	if err != nil || m.IDs == nil {
		return g, err
	}
	if g.Scheme, err = ReadScheme(ctx, c.at, m); err != nil {
		return nil, err
	}
	return g, g.readFiles(parallelReads,
		func() (*Dictionary, error) { return c.dictionary(ctx, m) },
		func() (*Back, error) { return c.back(ctx, m) })
}

// The method "dictionary" maps the cached dictionary file that the manifest names into memory.
func (c *cache) dictionary(ctx context.Context, m *Manifest) (*Dictionary, error) {
	layer := &m.IDs.Dictionary[0]
	var d *Dictionary
	unmap, err := c.mapped(ctx, layer.Key, layer.SizeBytes, func(raw []byte) (err error) {
		d, err = layer.open(raw)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w", err)
	}
	d.mapped = true
	runtime.AddCleanup(d, func(unmap func()) { unmap() }, unmap)
	return d, nil
}

// The method "back" maps the cached BackFile (file with the user ids) of the manifest into memory. If the manifest
// names no BackFile, the method "back" returns nil. The check of the BackFile reads all pages of the file. After the
// check, the method "back" releases the file's pages from memory, because a service converts few user numbers to ids.
func (c *cache) back(ctx context.Context, m *Manifest) (*Back, error) {
	f := m.back()
	if f == nil {
		return nil, nil
	}
	var b *Back
	unmap, err := c.mapped(ctx, f.Key, f.SizeBytes, func(raw []byte) (err error) {
		b, err = f.open(m, raw)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("way back to ids: %w", err)
	}
	if _, ok := c.at.(mapper); ok {
		objects.Unload(b.raw)
	}
	b.mapped = true
	runtime.AddCleanup(b, func(unmap func()) { unmap() }, unmap)
	return b, nil
}

// The method "mapped" maps a cached file into memory and calls the function "open", which checks every byte. If the
// file is damaged, the method "mapped" deletes the file, so that cache.save writes it again.
func (c *cache) mapped(ctx context.Context, key string, sizeBytes int64, open func([]byte) error) (unmap func(),
	err error) {
	files, ok := c.at.(mapper)
	if !ok {
		raw, err := c.at.Read(ctx, key, sizeBytes)
		if err != nil {
			return nil, err
		}
		return func() {}, open(raw)
	}
	raw, unmap, err := files.Map(ctx, key, sizeBytes)
	if err != nil {
		return nil, err
	}
	if err := open(raw); err != nil {
		unmap()
		_ = c.at.Delete(ctx, key) // if Delete fails too, save reports the reason
		return nil, err
	}
	return unmap, nil
}

// The method "open" returns the bitmap of a segment or set if the cache has it. The method "open" deletes a damaged
// copy, so that cache.save writes the bitmap again.
func (c *cache) open(ctx context.Context, s *Segment) (*bitmap.Bitmap, bool) {
	if c == nil {
		return nil, false
	}
	b, err := readBitmap(ctx, c.at, s)
	if err != nil && !errors.Is(err, objects.ErrNotFound) && ctx.Err() == nil {
		_ = c.at.Delete(ctx, s.Key) // if Delete fails too, save reports the reason
	}
	return b, err == nil
}

// The method "holds" reports whether the cache has the bitmap file of every entry in the list. The method "holds"
// checks the sizes of the files, but not their content. For a nil cache, the method "holds" returns true.
func (c *cache) holds(ctx context.Context, list []Segment) bool {
	if c == nil {
		return true
	}
	files, err := c.at.List(ctx, BitmapsPrefix)
	if err != nil {
		return false
	}
	sizes := map[string]int64{}
	for _, file := range files {
		sizes[file.Key] = file.SizeBytes
	}
	for i := range list {
		if size, ok := sizes[list[i].Key]; !ok || size != list[i].SizeBytes {
			return false
		}
	}
	return true
}

// The method "exists" reports whether the cache has ever contained a generation (published version) of the segments. If
// the cache cannot be read, the method "exists" returns true.
func (c *cache) exists(ctx context.Context) bool {
	if c == nil {
		return false
	}
	for _, prefix := range []string{CurrentKey, GenerationsPrefix, BitmapsPrefix} {
		if list, err := c.at.List(ctx, prefix); err != nil || len(list) > 0 {
			return true
		}
	}
	return false
}

// The method "save" stores a generation (published version) in the cache, and then deletes files that the cache no
// longer needs. Like a publisher, the method "save" writes the bitmaps first and current.json last. If a crash
// interrupts the method "save", the old generation in the cache stays intact.
func (c *cache) save(ctx context.Context, g *Generation) error {
	if c == nil {
		return nil
	}
	keep := map[string]bool{ManifestKey(g.Manifest.Generation): true}
	for i, entry := range g.Manifest.Entries() {
		keep[entry.Key] = true
		if g.bitmap(i) == nil {
			continue // the cache already has the bitmap, see holds
		}
		if _, err := c.at.Put(ctx, entry.Key, g.bitmap(i).Bytes()); err != nil {
			return err
		}
	}
	if err := c.saveIDs(ctx, g, keep); err != nil {
		return err
	}
	if err := c.at.Overwrite(ctx, ManifestKey(g.Manifest.Generation), g.Manifest.Encode()); err != nil {
		return err
	}
	if err := c.at.Overwrite(ctx, CurrentKey, PointerTo(g.Manifest).Encode()); err != nil {
		return err
	}
	return c.prune(ctx, keep)
}

// saveIDs stores ids.json, the dictionary and the BackFile (file with the user ids) of the generation g (published
// version) in the cache. saveIDs adds the keys of the dictionary and the BackFile to the map in the argument "keep".
func (c *cache) saveIDs(ctx context.Context, g *Generation, keep map[string]bool) error {
	if g.Manifest.IDs == nil {
		return c.at.Delete(ctx, IDsKey)
	}
	keep[DictionaryKey(g.Dictionary.sha256)] = true
	if !g.Dictionary.mapped {
		if _, err := c.at.Put(ctx, DictionaryKey(g.Dictionary.sha256), g.Dictionary.raw); err != nil {
			return err
		}
	}
	if g.Back != nil {
		key := g.Manifest.back().Key
		keep[key] = true
		if !g.Back.mapped {
			if _, err := c.at.Put(ctx, key, g.Back.raw); err != nil {
				return err
			}
		}
	}
	return c.at.Overwrite(ctx, IDsKey, ids.File{Kind: g.Scheme.Kind(), Key: g.Scheme.Key()}.Encode())
}

func (c *cache) prune(ctx context.Context, keep map[string]bool) error {
	var faults []error
	for _, prefix := range []string{BitmapsPrefix, GenerationsPrefix, DictionariesPrefix} {
		list, err := c.at.List(ctx, prefix)
		faults = append(faults, err)
		for _, o := range list {
			if !keep[o.Key] && !strings.HasPrefix(path.Base(o.Key), objects.TempPrefix) {
				faults = append(faults, c.at.Delete(ctx, o.Key))
			}
		}
	}
	return errors.Join(faults...)
}
