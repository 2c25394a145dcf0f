package live

import (
	"context"
	"errors"

	"capper/internal/capping"
)

// Kind says what a call did to a user's membership of a set.
type Kind uint8

// The kinds. If a user has two changes at one instant, the higher kind wins.
const (
	Forgotten Kind = iota // the earlier changes of the user are forgotten: the build decides again
	Removed
	Added

	kinds = iota // the number of kinds
)

// String returns the kind's name in answers and in the audit.
func (k Kind) String() string { return [...]string{"forgotten", "removed", "added"}[k] }

// Change is the latest change of one user in one set.
type Change struct {
	User capping.UserID
	Kind Kind
	At   capping.Instant // when the person said so, or when the call arrived
	By   string          // client of the call; "" is a caller without an API key
}

// Batch is a call that changes one set. Each list ascends strictly, and a user is in at most one of them.
type Batch struct {
	Set string
	By  string
	// 0: the store uses its own time, later than any earlier change of these users and than After
	At     capping.Instant
	After  capping.Instant // as-of instant of the set in use, for a build whose clock is fast
	Add    []capping.UserID
	Remove []capping.UserID
	Forget []capping.UserID
}

// Stored is the result of a Batch.
type Stored struct {
	At capping.Instant // the instant with which the changes were stored
	// Superseded is the number of users whose change has no effect: a later change takes precedence, or every
	// generation in use contains the change.
	Superseded int
	// Unstored lists the users whose changes may or may not have been stored. Repeating the call settles them.
	Unstored []capping.UserID
}

// Store is implemented by stores that keep live changes (see capping.As). A Store is safe for concurrent use.
type Store interface {
	// Lists returns the changes that this instance knows. The embedded store knows all changes.
	Lists() *Lists
	// Change stores the batch durably, and then applies it to Lists. If the answer has no Unstored users and no error,
	// every later call on any instance sees the changes. No crash, failover or restart loses them. An error is nil
	// exactly when every change was stored. ErrOlderInstance says that nothing was stored.
	Change(ctx context.Context, b *Batch) (Stored, error)
	// Renew applies to Lists every change of the given users that was stored before the call began. nil means all
	// users. The embedded store has nothing to do.
	Renew(ctx context.Context, users []capping.UserID) error
	// Free removes the changes that every generation in use contains: for each set the changes up to the instant. Free
	// also records the instants, so that an instance notices an older generation (see Lists.Freed). Free may do a part
	// of the work; the next call continues.
	Free(ctx context.Context, upTo map[string]capping.Instant) error
	// AnnounceAsOf reports the oldest as-of instants of the generations that this instance uses, by set.
	AnnounceAsOf(asOf map[string]capping.Instant)
	// OthersAsOf returns the oldest as-of instants that the other instances have reported, by set. ok is false until
	// every instance has reported. A set that no other instance reports is absent. The embedded store returns nil,
	// true.
	OthersAsOf() (asOf map[string]capping.Instant, ok bool)
}

// ErrOlderInstance is the error of a change that an older instance of the service would ignore.
var ErrOlderInstance = errors.New("an instance of an older version uses the store: upgrade every instance first")
