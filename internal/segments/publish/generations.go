package publish

import (
	"context"
	"sync"
	"time"

	"capper/internal/objects"
)

// maxListed is the most generations of a list.
const maxListed = 100

// listAge is how long a list is told again before the source is read anew.
const listAge = 5 * time.Second

// mostBytes is the most bytes of the bitmaps of two generations that are compared user
// by user.
const mostBytes = 128 << 20

// kept is how many comparisons are kept.
const kept = 16

// History reads the generations of a source. It is safe for concurrent use; who asks
// waits for who asked before.
type History struct {
	source    objects.Source
	clock     func() time.Time
	mostBytes int64

	turn   chan struct{} // holds one: whoever has it reads
	listed listGenerations

	mu       sync.Mutex
	compared map[pair]*Changes
	order    []pair // of compared, the oldest first
}

// list is what the source had at a time.
type listGenerations struct {
	at   time.Time
	all  []Listing
	more bool
}

// New is the history of a source, by the clock.
func New(source objects.Source, clock func() time.Time) *History {
	return &History{source: source, clock: clock, mostBytes: mostBytes, turn: make(chan struct{}, 1),
		compared: map[pair]*Changes{}}
}

// List is the generations, the newest first, at most MaxListed and the live one; more:
// there are others. The caller changes nothing of them.
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

// take waits for a turn to read, until ctx ends.
func (h *History) take(ctx context.Context) error {
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *History) end() { <-h.turn }
