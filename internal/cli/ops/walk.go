package ops

import (
	"context"
	"math"

	"capper/internal/capping"
)

// Source is a store whose logs can be walked over. Nobody writes to it.
type Source interface {
	// Logs is up to most users from an id on who have a log, in ascending order, and their logs.
	Logs(ctx context.Context, from capping.UserID, most int) ([]capping.UserID, []capping.Log, error)
	// Messages finds the messages of tokens, as capping.Store does.
	Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error)
}

// walk is over the users of one source.
type walk struct {
	source Source
	users  []capping.UserID
	logs   []capping.Log
	from   uint64 // where the next portion begins
}

// head is the next user, and whether there is one.
func (w *walk) head(ctx context.Context) (user capping.UserID, ok bool, err error) {
	if len(w.users) == 0 && w.from <= math.MaxUint32 {
		if w.users, w.logs, err = w.source.Logs(ctx, capping.UserID(w.from), portion); err != nil {
			return 0, false, err
		}
		w.from = math.MaxUint32 + 1
		if n := len(w.users); n == portion {
			w.from = uint64(w.users[n-1]) + 1
		}
	}
	if len(w.users) == 0 {
		return 0, false, nil
	}
	return w.users[0], true, nil
}

// take is the log of the user, if it is the next one; nil when the source has none.
func (w *walk) take(user capping.UserID) (log capping.Log) {
	if len(w.users) > 0 && w.users[0] == user {
		log = w.logs[0]
		w.users, w.logs = w.users[1:], w.logs[1:]
	}
	return log
}

// lowest is the lowest user that any of the walks is at.
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
