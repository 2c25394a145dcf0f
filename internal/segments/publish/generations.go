package publish

import (
	"context"
	"sync"
	"time"

	"capper/internal/objects"
)

// maxListed is the maximum number of generations that History.List returns. The live generation does not count for this
// maximum.
const maxListed = 100

// listAge is how long a History caches the list of generations before it reads the source again.
const listAge = 5 * time.Second

// mostBytes is the largest total size of two generations' bitmaps for which a History compares the users, and not only
// the user counts.
const mostBytes = 128 << 20

// kept is the maximum number of comparisons of two generations that a History caches.
const kept = 16

// History lists and compares the generations of a source for display, and caches the results. A History is safe for
// concurrent use; concurrent callers wait for each other.
type History struct {
	source    objects.Source
	clock     func() time.Time
	mostBytes int64

	turn   chan struct{} // holds one token; its owner reads the source
	listed listGenerations

	mu       sync.Mutex
	compared map[pair]*Changes
	order    []pair // the keys of compared, oldest first
}

// listGenerations is a cached list of the generations at the source.
type listGenerations struct {
	at   time.Time
	all  []Listing
	more bool
}

// New returns a History of the generations at the source. The function in the argument "clock" returns the current
// time.
func New(source objects.Source, clock func() time.Time) *History {
	return &History{source: source, clock: clock, mostBytes: mostBytes, turn: make(chan struct{}, 1),
		compared: map[pair]*Changes{}}
}

// List returns the newest maxListed generations of the source and the live generation, newest first. The result "more"
// of List is true if the source has further generations, which List does not return. The caller must not change the
// result.
func (h *History) List(ctx context.Context) (all []Listing, more bool, err error) {
	if err := h.take(ctx); err != nil {
		return nil, false, err
	}
	defer h.end()
	if now := h.clock(); h.listed.all == nil || now.Sub(h.listed.at) >= listAge {
		all, more, err := listNewest(ctx, h.source, maxListed)
		if err != nil {
			return nil, false, err
		}
		h.listed = listGenerations{now, all, more}
	}
	return h.listed.all, h.listed.more, nil
}

// take waits until no other caller of the History reads the source, or until ctx ends.
func (h *History) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *History) end() { <-h.turn }
