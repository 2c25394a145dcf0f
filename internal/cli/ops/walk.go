package ops

import (
	"context"
	"math"

	"capper/internal/capping"
)

// Source is a store whose logs can be read in order of users. Nobody may write to the store.
type Source interface {
	// Logs returns up to most users who have a log, in ascending order beginning at from, and their logs.
	Logs(ctx context.Context, from capping.UserID, most int) ([]capping.UserID, []capping.Log, error)
	// Messages returns the messages of tokens, like capping.Store.
	Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error)
}

// walk is the position in the users of one source.
type walk struct {
	source Source
	users  []capping.UserID
	logs   []capping.Log
	from   capping.UserID // where the next portion begins
	ended  bool           // the source has no next portion
}

// head returns the next user. ok is false at the end.
func (w *walk) head(ctx context.Context) (user capping.UserID, ok bool, err error) {
	if len(w.users) == 0 && !w.ended {
		if w.users, w.logs, err = w.source.Logs(ctx, w.from, portion); err != nil {
			return 0, false, err
		}
		n := len(w.users)
		if w.ended = n < portion || w.users[n-1] == math.MaxUint64; !w.ended {
			w.from = w.users[n-1] + 1
		}
	}
	if len(w.users) == 0 {
		return 0, false, nil
	}
	return w.users[0], true, nil
}

// take returns the user's log if the user is next, and moves on. take returns nil if the source has no log of the
// user.
func (w *walk) take(user capping.UserID) (log capping.Log) {
	if len(w.users) > 0 && w.users[0] == user {
		log = w.logs[0]
		w.users, w.logs = w.users[1:], w.logs[1:]
	}
	return log
}

// lowest returns the lowest next user among the walks. ok is false at the end of all walks.
func lowest(ctx context.Context, walks []*walk) (user capping.UserID, ok bool, err error) {
	for _, w := range walks {
		at, is, err := w.head(ctx)
		if err != nil {
			return 0, false, err
		}
		if is && (!ok || at < user) {
			user, ok = at, true
		}
	}
	return user, ok, nil
}
