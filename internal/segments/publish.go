package segments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	if state.Name, state.Fault = parsePointer(body); state.Fault == nil {
		state.Generation, state.Fault = ReadGeneration(ctx, src, state.Name)
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
	if err := p.putBitmaps(ctx, m, c.Bitmaps, done); err != nil {
		return nil, err
	}
	if _, err := p.Store.Put(ctx, manifestKey(m.Generation), m.encode()); err != nil {
		return nil, err
	}
	if err := p.goLive(ctx, m.Generation, base); err != nil {
		return nil, err
	}
	// A gc that ran beside this publish may have taken a bitmap that was old and, until now, unused.
	return done, p.putBitmaps(ctx, m, c.Bitmaps, done)
}

func sameSegments(a, b []Segment) bool {
	return slices.EqualFunc(a, b, func(a, b Segment) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 })
}

// putBitmaps stores those bitmaps that the store does not have, in parallel.
func (p *Publisher) putBitmaps(ctx context.Context, m *Manifest, bitmaps []*Bitmap, done *Published) error {
	var mu sync.Mutex
	faults := make([]error, len(bitmaps))
	first := map[string]bool{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallelReads)
	for i, b := range bitmaps {
		s := &m.Segments[i]
		if first[s.Key] {
			continue // two segments with the same users, such as two empty ones
		}
		first[s.Key] = true
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			written, err := p.Store.Put(ctx, s.Key, b.Bytes())
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

// goLive replaces current.json if it is still the one of base.
func (p *Publisher) goLive(ctx context.Context, generation string, base *LiveState) error {
	body := encodePointer(generation)
	err := p.Store.ReplaceCurrent(ctx, body, base.tag)
	if !errors.Is(err, ErrLostRace) {
		return err
	}
	// A request whose answer was lost is sent again, and then finds its own success in its way.
	if now, _, readErr := p.Store.ReadCurrent(ctx, ""); readErr == nil && bytes.Equal(now, body) {
		return nil
	}
	return err
}

// Rollback makes an earlier generation live again, after it has been read and
// checked as a reader would. The result is Unchanged when it is live already.
func (p *Publisher) Rollback(ctx context.Context, generation string) (*Published, error) {
	base, err := ReadLiveState(ctx, p.Store)
	if err != nil {
		return nil, err
	}
	g, err := ReadGeneration(ctx, p.Store, generation)
	if err != nil {
		return nil, fmt.Errorf("roll back: %w", err)
	}
	done := &Published{Manifest: g.Manifest}
	if base.Name == generation {
		done.Unchanged = true
		return done, nil
	}
	return done, p.goLive(ctx, generation, base)
}
