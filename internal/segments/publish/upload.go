package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// An upload stores the bitmaps, the manifest and the other objects of one generation (published version) at a location.
type upload struct {
	at    objects.Location
	g     *segments.Generation
	done  *Published
	shown func(key string, sizeBytes int64) // nil disables the call

	publisher *Publisher
	// The map "read" contains the keys of the live generation's objects. The command gc does not remove these objects.
	read map[string]bool
}

// The method "upload" prepares the upload of a generation's objects.
func (p *Publisher) upload(g *segments.Generation, base *LiveState, done *Published) *upload {
	u := &upload{at: p.Location, g: g, done: done, shown: p.Uploaded, publisher: p, read: map[string]bool{}}
	if base.Generation != nil {
		for _, s := range base.Generation.Manifest.Entries() {
			u.read[s.Key] = true
		}
		for _, o := range base.Generation.Manifest.Objects() {
			u.read[o.Key] = true
		}
	}
	return u
}

// storePasses is the maximum number of attempts to store an object: a location may confirm a write, but not have the
// object.
const storePasses = 3

// The method "put" stores the bitmaps and then the manifest, and checks that each object exists, because a location may
// confirm a write and lose the object. A second call of the method "put" only checks once for each object that it
// exists.
func (u *upload) put(ctx context.Context) error {
	if err := u.checkCarried(ctx); err != nil {
		return err
	}
	var left []string // nil: all
	for range storePasses + 1 {
		written, err := u.pass(ctx, left)
		if err != nil || len(written) == 0 {
			return err
		}
		left = written
	}
	return &objects.StorageError{Err: fmt.Errorf(
		"%s: the storage confirmed the write of %s %d times, but did not keep the object",
		u.at.Name(), left[0], storePasses)}
}

// The method "pass" stores the bitmaps of the generation (published version) in parallel, and then the manifest. If the
// argument "only" is not nil, the method "pass" stores only the objects with these keys. The method "pass" returns the
// keys of the objects that it wrote. Objects from an interrupted publish are stored again, so that these objects are
// complete and too young for the command gc.
func (u *upload) pass(ctx context.Context, only []string) (written []string, err error) {
	entries, bitmaps := u.g.Manifest.Entries(), slices.Concat(u.g.Bitmaps, u.g.Sets)
	first := slices.DeleteFunc(firstOfEachKey(entries), func(i int) bool {
		return bitmaps[i] == nil || only != nil && !slices.Contains(only, entries[i].Key)
	})
	stored, faults := make([]bool, len(first)), make([]error, len(first))
	parallel.AtMost(parallelRequests, len(first), func(i int) {
		stored[i], faults[i] = u.putBitmap(ctx, entries[first[i]], bitmaps[first[i]])
	})
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	u.shown = nil
	for i, k := range first {
		if stored[i] {
			written = append(written, entries[k].Key)
		}
	}
	stores, err := u.putIDs(ctx, only)
	if err != nil {
		return nil, err
	}
	written = append(written, stores...)
	manifest := segments.ManifestKey(u.g.Manifest.Generation)
	if only != nil && !slices.Contains(only, manifest) {
		return written, nil
	}
	new, err := u.putObject(ctx, manifest, u.g.Manifest.Encode())
	if new {
		written = append(written, manifest)
	}
	return written, err
}

// parallelRequests is the maximum number of concurrent requests to a location.
const parallelRequests = 8

// firstOfEachKey returns the indexes of the entries to store. If an entry has the same bitmap as an earlier entry, such
// as a second empty bitmap, firstOfEachKey omits this entry.
func firstOfEachKey(entries []*segments.Segment) (list []int) {
	seen := map[string]bool{}
	for i, s := range entries {
		if !seen[s.Key] {
			seen[s.Key] = true
			list = append(list, i)
		}
	}
	return list
}

// putIDs stores the dictionary and the BackFile (file with the user ids) of a generation (published version) whose ids
// are not dense. If the candidate (built but unpublished generation) refers to stored files, putIDs stores nothing.
// putIDs returns the keys of the files that it wrote.
func (u *upload) putIDs(ctx context.Context, only []string) (written []string, err error) {
	if u.g.Dictionary == nil {
		return nil, nil
	}
	bodies := [][]byte{u.g.Dictionary.Bytes()}
	if u.g.Back != nil {
		bodies = append(bodies, u.g.Back.Bytes())
	}
	for i, o := range u.g.Manifest.Objects() {
		if only != nil && !slices.Contains(only, o.Key) {
			continue
		}
		new, err := u.putObject(ctx, o.Key, bodies[i])
		if err != nil {
			return nil, err
		}
		if new {
			u.note(o.Key, o.SizeBytes)
			written = append(written, o.Key)
		}
	}
	return written, nil
}

// The method "note" adds a stored object to the result of the publish.
func (u *upload) note(key string, sizeBytes int64) {
	u.publisher.mu.Lock()
	defer u.publisher.mu.Unlock()
	if !slices.Contains(u.done.Uploaded, key) {
		u.done.Uploaded = append(u.done.Uploaded, key)
		u.done.UploadedBytes += sizeBytes
	}
}

func (u *upload) putBitmap(ctx context.Context, s *segments.Segment, b *bitmap.Bitmap) (written bool, err error) {
	written, err = u.putObject(ctx, s.Key, b.Bytes())
	if err != nil {
		return false, err
	}
	if u.shown != nil {
		u.shown(s.Key, s.SizeBytes)
	}
	if written {
		u.note(s.Key, s.SizeBytes)
	}
	return written, nil
}

// putObject stores an object at the location. If an object is live or was just stored, the command gc cannot remove it.
// Such an object cannot vanish, so putObject writes it only if it does not exist yet. If putObject writes nothing, the
// result "written" is false.
func (u *upload) putObject(ctx context.Context, key string, body []byte) (written bool, err error) {
	if u.read[key] || u.publisher.hasStored(key) {
		return u.at.Put(ctx, key, body)
	}
	if err := u.at.Overwrite(ctx, key, body); err != nil {
		return false, err
	}
	u.publisher.noteStored(key)
	return true, nil
}

func (p *Publisher) hasStored(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored[key]
}

func (p *Publisher) noteStored(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stored == nil {
		p.stored = map[string]bool{}
	}
	p.stored[key] = true
}

// checkCarried checks that all stored objects to which an amend (publish of some sets) refers exist. checkCarried lists
// each folder of the location once. The objects cannot vanish later, because the command gc removes no object of the
// live generation (published version that current.json names). If another generation goes live in the meantime, the
// amend fails.
func (u *upload) checkCarried(ctx context.Context) error {
	entries, bitmaps := u.g.Manifest.Entries(), slices.Concat(u.g.Bitmaps, u.g.Sets)
	if slices.Contains(bitmaps, nil) {
		sizes, err := u.sizesBelow(ctx, segments.BitmapsPrefix)
		if err != nil {
			return err
		}
		for i, s := range entries {
			if bitmaps[i] == nil && sizes[s.Key] != s.SizeBytes {
				return u.missing(fmt.Sprintf("the bitmap of %q", s.Name))
			}
		}
	}
	if u.g.Dictionary != nil || u.g.Manifest.IDs == nil {
		return nil
	}
	sizes, err := u.sizesBelow(ctx, segments.DictionariesPrefix)
	if err != nil {
		return err
	}
	for _, o := range u.g.Manifest.Objects() {
		if sizes[o.Key] != o.SizeBytes {
			return u.missing(o.Key)
		}
	}
	return nil
}

// sizesBelow lists a folder of the location, and returns a map from the key of each object to its size. If the map
// returns the size 0 for a key, the object is missing, because no object in a manifest has this size.
func (u *upload) sizesBelow(ctx context.Context, prefix string) (map[string]int64, error) {
	stored, err := u.at.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	sizes := make(map[string]int64, len(stored))
	for _, o := range stored {
		sizes[o.Key] = o.SizeBytes
	}
	return sizes, nil
}

func (u *upload) missing(what string) error {
	return &objects.StorageError{Err: fmt.Errorf("%s: object %s is missing or has another size: "+
		"build all segments and sets again with --force", u.at.Name(), what)}
}
