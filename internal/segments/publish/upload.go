package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// upload is a generation on its way to a location.
type upload struct {
	at    objects.Location
	g     *segments.Generation
	done  *Published
	shown func(key string, sizeBytes int64) // nil: nothing

	mu sync.Mutex
	// young are the keys of what this run has stored, and of the bitmaps of the
	// live generation, which have been read and which no gc takes.
	young map[string]bool
}

// upload prepares what goLive stores.
func (p *Publisher) upload(g *segments.Generation, base *LiveState, done *Published) *upload {
	u := &upload{at: p.Location, g: g, done: done, shown: p.Uploaded, young: map[string]bool{}}
	if base.Generation != nil {
		for _, s := range base.Generation.Manifest.Entries() {
			u.young[s.Key] = true
		}
	}
	return u
}

// storePasses is how often an object is stored that the store says it has, and has not.
const storePasses = 3

// put stores bitmaps, then the manifest, and looks that each is there: a store may say
// that it has an object and lose it. The same again costs one look at each object.
func (u *upload) put(ctx context.Context) error {
	var left []string // nil: all
	for range storePasses + 1 {
		written, err := u.pass(ctx, left)
		if err != nil || len(written) == 0 {
			return err
		}
		left = written
	}
	return &objects.StorageError{Err: fmt.Errorf("%s: the store accepted %s %d times but did not keep it",
		u.at.Name(), left[0], storePasses)}
}

// pass stores bitmaps in parallel, then the manifest, all or those with the keys only, and
// returns the keys that were not there. What an earlier run left is stored again: so it is
// whole, and so young that its age protects it too.
func (u *upload) pass(ctx context.Context, only []string) (written []string, err error) {
	entries, bitmaps := u.g.Manifest.Entries(), slices.Concat(u.g.Bitmaps, u.g.Sets)
	first := slices.DeleteFunc(firstOfEachKey(entries), func(i int) bool {
		return only != nil && !slices.Contains(only, entries[i].Key)
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

// parallelRequests bounds what is asked of a location at once.
const parallelRequests = 8

// firstOfEachKey lists the segments and sets without those that have the users of one
// before them, such as a second empty one.
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

func (u *upload) putBitmap(ctx context.Context, s *segments.Segment, b *bitmap.Bitmap) (written bool, err error) {
	written, err = u.putObject(ctx, s.Key, b.Bytes())
	if err != nil {
		return false, err
	}
	if u.shown != nil {
		u.shown(s.Key, s.SizeBytes)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if written && !slices.Contains(u.done.Uploaded, s.Key) {
		u.done.Uploaded = append(u.done.Uploaded, s.Key)
		u.done.UploadedBytes += s.SizeBytes
	}
	return written, nil
}

// putObject stores an object; one that is young is only looked for. written is
// false when it was there.
func (u *upload) putObject(ctx context.Context, key string, body []byte) (written bool, err error) {
	u.mu.Lock()
	isYoung := u.young[key]
	u.mu.Unlock()
	if isYoung {
		return u.at.Put(ctx, key, body)
	}
	if err := u.at.Overwrite(ctx, key, body); err != nil {
		return false, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.young[key] = true
	return true, nil
}
