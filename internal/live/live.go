package live

import (
	"context"
	"errors"

	"capper/internal/capping"
)

// Kind says how an API call changes the membership of a user in a set.
type Kind uint8

// These constants are the kinds of live changes (changes of sets by API calls). If a user has two live changes with the
// same time, the change with the higher Kind takes precedence.
const (
	Forgotten Kind = iota // cancels the user's earlier changes, so that the build determines membership again
	Removed
	Added

	kinds = iota // number of kinds
)

// String returns the name of the kind in API responses and in the audit.
func (k Kind) String() string { return [...]string{"forgotten", "removed", "added"}[k] }

// The type Change is the latest live change (change by an API call) of a user in a set.
type Change struct {
	User capping.UserID
	Kind Kind
	At   capping.Instant // time at which the person asked for the change, or at which the call arrived
	By   string          // name of the client that made the call; "": a caller without an API key
}

// A Batch holds the changes of one API call that changes a set. Each list of users in a Batch is in strictly ascending
// order, and each user is in at most one of the lists.
type Batch struct {
	Set string
	By  string
	// The field At is the time of the changes. If At is 0, the store uses its current time or a later time. This time
	// is after the field After, and after all earlier changes of these users.
	At     capping.Instant
	After  capping.Instant // as-of time of the set in use, which is in the future if the build's clock is fast
	Add    []capping.UserID
	Remove []capping.UserID
	Forget []capping.UserID
}

// The type Stored is the result of storing a Batch of changes.
type Stored struct {
	At capping.Instant // time of the stored changes
	// Superseded is the number of users whose change has no effect. Either a later change takes precedence, or all
	// generations in use already contain the change.
	Superseded int
	// Unstored lists the users whose changes may or may not be stored. The caller should repeat the call.
	Unstored []capping.UserID
}

// Store is the interface of stores that support live changes (see capping.As).
type Store interface {
	// Lists returns the live changes in the memory of this instance. With the embedded store, Lists contains all
	// changes.
	Lists() *Lists
	// The method Change stores the batch durably, and then applies the changes to Lists. If Change returns no Unstored
	// users and no error, all later decisions of all instances take the changes into account. Stored changes survive
	// crashes, failovers and restarts. Change returns the error nil if and only if all changes were stored. If Change
	// returns ErrOlderInstance, no changes were stored.
	Change(ctx context.Context, b *Batch) (Stored, error)
	// Renew reads all changes of the given users that were stored before this call, and applies them to Lists. A nil
	// list means all users. With the embedded store, Renew does nothing.
	Renew(ctx context.Context, users []capping.UserID) error
	// The method Free removes changes that all generations (published versions of the sets) in use contain. The
	// argument "upTo" holds, for each set, the time of the latest changes to remove. Free also stores these times, so
	// that an instance with an older generation notices the removal (see Lists.Freed). Free may remove only some of the
	// changes; the next call removes the others.
	Free(ctx context.Context, upTo map[string]capping.Instant) error
	// AnnounceAsOf tells other instances the oldest as-of time of each set among the generations that this instance
	// uses.
	AnnounceAsOf(asOf map[string]capping.Instant)
	// OthersAsOf returns, for each set, the oldest as-of time that another instance has reported. The result ok is
	// false until every instance has reported its times. The result asOf omits sets that no other instance has
	// reported. The embedded store returns nil and true.
	OthersAsOf() (asOf map[string]capping.Instant, ok bool)
}

// ErrOlderInstance is the error of a live change (change by an API call) if an instance with an older version of capper
// uses the store. This older instance would ignore the change.
var ErrOlderInstance = errors.New("an instance of an older capper version uses the store: upgrade every instance first")
