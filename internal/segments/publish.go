package segments

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Candidate is a generation that has been built and not been published yet.
type Candidate struct {
	Names   []string // in order of precedence
	Bitmaps []*Bitmap
}

// Describe lists the manifest entries of the candidate. Hashing takes all cores.
func (c *Candidate) Describe() []Segment {
	list := make([]Segment, len(c.Names))
	inParallel(len(c.Names), func(i int) { list[i] = describe(c.Names[i], c.Bitmaps[i]) })
	return list
}

// SizeBytes is the size of all its serialized bitmaps.
func (c *Candidate) SizeBytes() int64 {
	var sum int64
	for _, b := range c.Bitmaps {
		sum += int64(len(b.raw))
	}
	return sum
}

// Publisher makes generations live.
type Publisher struct {
	Store       Store
	ToolVersion string
	Clock       func() time.Time // nil is time.Now
	// Uploaded is called after each object that was stored, from several goroutines. Nil: nothing.
	Uploaded func(key string, sizeBytes int64)
}

func (p *Publisher) now() time.Time {
	if p.Clock == nil {
		return time.Now()
	}
	return p.Clock()
}

// LiveState is what is live at one moment: the base of a comparison and of the
// compare-and-swap that follows it. The zero value: nothing has been published.
type LiveState struct {
	Generation *Generation // nil when nothing is published or Fault is set
	Name       string
	// Fault is why the live generation cannot be read; a publish must then be forced.
	Fault error
	tag   string
}

// ReadLiveState reads the live generation, all of it. What is damaged there is
// a Fault of the state; the error is for a store that does not answer.
func ReadLiveState(ctx context.Context, src Source) (*LiveState, error) {
	body, tag, err := src.ReadCurrent(ctx, "")
	if errors.Is(err, ErrNotFound) {
		return &LiveState{}, nil
	}
	if err != nil {
		return nil, err
	}
	state := &LiveState{tag: tag}
	live, err := parsePointer(body)
	if err != nil {
		state.Fault = err
		return state, ctx.Err()
	}
	state.Name = live.Generation
	if m, err := live.manifest(ctx, src); err != nil {
		state.Fault = err
	} else {
		state.Generation, state.Fault = readWhole(ctx, src, m)
	}
	return state, ctx.Err()
}

// Published is what a publish did.
type Published struct {
	Manifest *Manifest
	// Unchanged: the same segments were live already, nothing was written.
	Unchanged bool
	// UploadedBytes of the bitmaps that the store did not have yet.
	UploadedBytes int64
	Uploaded      []string // keys of those bitmaps
}

// Publish stores the candidate and makes it live if base still is: bitmaps
// first, the manifest next, current.json last, so that a crash at any point
// leaves the live generation whole. What is live already changes nothing.
// ErrLostRace when somebody else has published since base was read.
func (p *Publisher) Publish(ctx context.Context, c *Candidate, base *LiveState, reason string) (*Published, error) {
	list := c.Describe()
	if base.Generation != nil && sameSegments(base.Generation.Manifest.Segments, list) {
		return &Published{Manifest: base.Generation.Manifest, Unchanged: true}, nil
	}
	m := newManifest(p.now(), p.ToolVersion, reason, list)
	if err := m.check(); err != nil {
		return nil, err
	}
	done := &Published{Manifest: m}
	g := &Generation{Manifest: m, Bitmaps: c.Bitmaps}
	if err := p.put(ctx, g, base, done); err != nil {
		return nil, err
	}
	return done, p.goLive(ctx, g, base, done)
}

func sameSegments(a, b []Segment) bool {
	return slices.EqualFunc(a, b, func(a, b Segment) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 })
}

// put stores what the store does not have of a generation: bitmaps in parallel,
// then the manifest. A bitmap that is there already is believed when it belongs
// to the live generation, which has been read; any other is compared.
func (p *Publisher) put(ctx context.Context, g *Generation, base *LiveState, done *Published) error {
	whole := map[string]bool{}
	if base.Generation != nil {
		for _, s := range base.Generation.Manifest.Segments {
			whole[s.Key] = true
		}
	}
	store := func(ctx context.Context, s *Segment, b *Bitmap) (bool, error) {
		written, err := p.Store.Put(ctx, s.Key, b.Bytes())
		if err != nil || written || whole[s.Key] {
			return written, err
		}
		return p.putAgain(ctx, s, b)
	}
	if err := p.putBitmaps(ctx, g, done, store); err != nil {
		return err
	}
	_, err := p.Store.Put(ctx, manifestKey(g.Manifest.Generation), g.Manifest.encode())
	return err
}

// putAgain stores a bitmap in the place of one that has its size and not its bytes.
func (p *Publisher) putAgain(ctx context.Context, s *Segment, b *Bitmap) (written bool, err error) {
	stored, err := p.Store.Read(ctx, s.Key, s.SizeBytes)
	switch {
	case err == nil && bytes.Equal(stored, b.Bytes()):
		return false, nil
	case err == nil:
		err = p.Store.Delete(ctx, s.Key) // nobody can use it as it is
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	if err != nil {
		return false, err
	}
	return p.Store.Put(ctx, s.Key, b.Bytes())
}

func (p *Publisher) putBitmaps(ctx context.Context, g *Generation, done *Published, store func(context.Context, *Segment, *Bitmap) (bool, error)) error {
	var mu sync.Mutex
	faults := make([]error, len(g.Bitmaps))
	first := map[string]bool{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelReads)
	for i, b := range g.Bitmaps {
		s := &g.Manifest.Segments[i]
		if first[s.Key] {
			continue // two segments with the same users, such as two empty ones
		}
		first[s.Key] = true
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			written, err := store(ctx, s, b)
			faults[i] = err
			if p.Uploaded != nil && err == nil {
				p.Uploaded(s.Key, s.SizeBytes)
			}
			if written {
				mu.Lock()
				done.Uploaded = append(done.Uploaded, s.Key)
				done.UploadedBytes += s.SizeBytes
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// goLive replaces current.json if it is still the one of base. Then it looks
// once more that everything is there: a gc that ran beside this publish may
// have taken what was old and, until now, unused.
func (p *Publisher) goLive(ctx context.Context, g *Generation, base *LiveState, done *Published) error {
	body := encodePointer(g.Manifest)
	err := p.Store.ReplaceCurrent(ctx, body, base.tag)
	if errors.Is(err, ErrLostRace) {
		// A request whose answer was lost is sent again, and then finds its own success in its way.
		if now, _, readErr := p.Store.ReadCurrent(ctx, ""); readErr == nil && bytes.Equal(now, body) {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return p.mend(ctx, g, done)
}

// mend stores what is missing of a generation that has been whole.
func (p *Publisher) mend(ctx context.Context, g *Generation, done *Published) error {
	key := manifestKey(g.Manifest.Generation)
	if _, err := p.Store.Read(ctx, key, maxDocumentBytes); errors.Is(err, ErrNotFound) {
		if _, err := p.Store.Put(ctx, key, g.Manifest.encode()); err != nil {
			return err
		}
	}
	quiet := *p
	quiet.Uploaded = nil
	return quiet.putBitmaps(ctx, g, done, func(ctx context.Context, s *Segment, b *Bitmap) (bool, error) {
		return p.Store.Put(ctx, s.Key, b.Bytes())
	})
}

// Rollback makes an earlier generation live again if base still is; earlier is
// what ReadGeneration returned, checked as a reader would. The result is
// Unchanged when it is live already, and whole.
func (p *Publisher) Rollback(ctx context.Context, earlier *Generation, base *LiveState) (*Published, error) {
	done := &Published{Manifest: earlier.Manifest, Unchanged: base.Fault == nil && base.Name == earlier.Manifest.Generation}
	if done.Unchanged {
		return done, nil
	}
	return done, p.goLive(ctx, earlier, base, done)
}
