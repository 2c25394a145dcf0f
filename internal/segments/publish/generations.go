package publish

import (
	"context"
	"sync"
	"time"

	"capper/internal/objects"
)

// maxListed is the maximum number of generations in a list.
const maxListed = 100

// listAge is how long a History caches a list before it reads the source again.
const listAge = 5 * time.Second

// mostBytes is the maximum total size of the bitmaps of two generations that a History compares user by user.
const mostBytes = 128 << 20

// kept is the maximum number of cached comparisons.
const kept = 16

// History reads and caches the generations of a source. A History is safe for concurrent use; concurrent callers wait
// for each other.
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

// listGenerations is a cached list of the source's generations.
type listGenerations struct {
	at   time.Time
	all  []Listing
	more bool
}

// New returns the history of a source; clock returns the current time.
func New(source objects.Source, clock func() time.Time) *History {
	return &History{source: source, clock: clock, mostBytes: mostBytes, turn: make(chan struct{}, 1),
		compared: map[pair]*Changes{}}
}

// List returns the newest maxListed generations and the live generation, newest first. more is true if the source has
// further generations. The caller must not change the result.
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

// take waits for permission to read the source, until ctx ends.
func (h *History) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *History) end() { <-h.turn }
