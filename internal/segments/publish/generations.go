package publish

import (
	"context"
	"sync"
	"time"

	"capper/internal/objects"
)

// maxListed is the maximum number of generations (published versions) that History.List returns. If the live generation
// is older than these generations, History.List also returns the live generation.
const maxListed = 100

// listAge is the time for which a History caches the list of generations (published versions).
const listAge = 5 * time.Second

// mostBytes is a limit for comparisons: if the bitmaps and dictionaries of two generations (published versions) take
// more bytes together, a History compares user counts instead of users.
const mostBytes = 128 << 20

// The constant "kept" is the maximum number of comparisons of two generations (published versions) that a History
// caches.
const kept = 16

// A History lists and compares the generations (published versions) of a source for display, and caches the results. A
// History is safe for concurrent use; concurrent callers wait for each other.
type History struct {
	source    objects.Source
	clock     func() time.Time
	mostBytes int64

	turn   chan struct{} // contains a token while a caller reads the source
	listed listGenerations

	mu       sync.Mutex
	compared map[pair]*Changes
	order    []pair // the keys of compared, oldest first
}

// listGenerations is a cached list of the generations (published versions) at the source.
type listGenerations struct {
	at   time.Time
	all  []Listing
	more bool
}

// The function New returns a History of the generations (published versions) at the source. The argument "clock" of New
// is a function that returns the current time.
func New(source objects.Source, clock func() time.Time) *History {
	return &History{source: source, clock: clock, mostBytes: mostBytes, turn: make(chan struct{}, 1),
		compared: map[pair]*Changes{}}
}

// List returns the newest maxListed generations of the source and the live generation (published version that
// current.json names), newest first. If the source has further generations, the result "more" is true. The caller of
// List must not change the returned list.
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

// The method "take" waits until no other caller of the History reads the source, or until ctx ends.
func (h *History) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *History) end() { <-h.turn }
