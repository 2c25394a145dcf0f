package publish

import (
	"context"
	"errors"
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

// put stores bitmaps in parallel, then the manifest. What an earlier run left is
// stored again: so it is whole, and so young that its age protects it too. The
// same again costs one look at each object.
func (u *upload) put(ctx context.Context) error {
	entries, bitmaps := u.g.Manifest.Entries(), slices.Concat(u.g.Bitmaps, u.g.Sets)
	first := firstOfEachKey(entries)
	faults := make([]error, len(first))
	parallel.AtMost(parallelRequests, len(first), func(i int) {
		faults[i] = u.putBitmap(ctx, entries[first[i]], bitmaps[first[i]])
	})
	if err := errors.Join(faults...); err != nil {
		return err
	}
	u.shown = nil
	_, err := u.putObject(ctx, segments.ManifestKey(u.g.Manifest.Generation), u.g.Manifest.Encode())
	return err
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

func (u *upload) putBitmap(ctx context.Context, s *segments.Segment, b *bitmap.Bitmap) error {
	written, err := u.putObject(ctx, s.Key, b.Bytes())
	if err != nil {
		return err
	}
	if u.shown != nil {
		u.shown(s.Key, s.SizeBytes)
	}
	if written {
		u.mu.Lock()
		u.done.Uploaded = append(u.done.Uploaded, s.Key)
		u.done.UploadedBytes += s.SizeBytes
		u.mu.Unlock()
	}
	return nil
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
