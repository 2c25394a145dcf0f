package ops

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"capper/internal/capping"
	"capper/internal/live"
)

// The constant changing is the number of live changes (changes of sets by API calls) that CopyChanges copies
// simultaneously.
const changing = 64

// CopyChanges copies the live changes of sets (additions and removals of users by API calls) to another store, with the
// times and clients of the changes. CopyChanges then reads the copied changes back from the other store, and returns an
// error unless the other store contains all changes. The result n is the number of copied changes. Callers may repeat
// CopyChanges.
func CopyChanges(ctx context.Context, from, to live.Store) (n int, err error) {
	records := from.Lists().Records(func(capping.UserID) bool { return true })
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(changing)
	for _, r := range records {
		n += r.Len()
		for i := range r.Runs {
			run := &r.Runs[i]
			b := &live.Batch{Set: r.Set, By: r.By, At: run.At, Add: run.Users[live.Added],
				Remove: run.Users[live.Removed], Forget: run.Users[live.Forgotten]}
			group.Go(func() error {
				ctx, cancel := context.WithTimeout(within, patient)
				defer cancel()
				_, err := to.Change(ctx, b)
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return n, fmt.Errorf("copy the changes to sets (named groups of users): %w", err)
	}
	if err := to.Renew(ctx, nil); err != nil {
		return n, fmt.Errorf("read the copied changes to sets (named groups of users): %w", err)
	}
	for _, r := range records {
		if missing := to.Lists().Superseded(r); missing > 0 {
			return n, fmt.Errorf("%d changes to set %q: %w", missing, r.Set, ErrDiffers)
		}
	}
	if err := to.Free(ctx, from.Lists().AllFreed()); err != nil {
		return n, err
	}
	return n, nil
}
