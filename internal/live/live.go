package live

import (
	"context"
	"errors"

	"capper/internal/capping"
)

// Change is the latest change of one user in one set.
type Change struct {
	User    capping.UserID
	Removed bool            // the call removed the user; false: the call added the user
	At      capping.Instant // when the person said so, or when the call arrived
	By      string          // client of the call; "" is a caller without an API key
}

// Batch is a call that changes one set. A user may be in Add or in Remove, once.
type Batch struct {
	Set    string
	By     string
	At     capping.Instant // 0: the store uses its own time, later than any earlier change of these users
	Add    []capping.UserID
	Remove []capping.UserID
}

// Stored is the result of a Batch.
type Stored struct {
	At capping.Instant // the instant with which the changes were stored
	// Unstored lists the users whose changes may or may not have been stored. Repeating the call settles them.
	Unstored []capping.UserID
}

// Store is implemented by stores that keep live changes (see capping.As). A Store is safe for concurrent use.
type Store interface {
	// Lists returns the changes that this instance knows. The embedded store knows all changes.
	Lists() *Lists
	// Change stores the batch durably, and then applies it to Lists. After an answer without Unstored users and
	// without an error, no instance decides a later call without the changes, and no crash, failover or restart
	// loses them. An error is nil exactly when every change was stored. ErrOlderInstance says that nothing was
	// stored.
	Change(ctx context.Context, b *Batch) (Stored, error)
	// Renew applies every change that was stored before the call began to Lists: those of the given partitions
	// of the store, or of all for nil. The embedded store has nothing to do.
	Renew(ctx context.Context, partitions []int) error
	// Free removes the changes that the generations in use contain: for each set the changes up to the instant
	// (see Absorbed). Free also records the instants, so that a generation from before them is noticed
	// (Lists.Freed). Free may do a part of the work; the next call continues.
	Free(ctx context.Context, upTo map[string]capping.Instant) error
	// AnnounceAsOf reports the oldest as-of instants of the generations that this instance uses, by set.
	AnnounceAsOf(asOf map[string]capping.Instant)
	// OthersAsOf returns the oldest as-of instants that the other instances have reported, by set. ok is false
	// while one of them has not reported. A set that no other instance reports is absent. The embedded store
	// returns nil, true.
	OthersAsOf() (asOf map[string]capping.Instant, ok bool)
}

// ErrOlderInstance is the error of a change that an older instance of the service would ignore.
var ErrOlderInstance = errors.New("an instance of an older version uses the store: upgrade every instance first")
