package ops

import (
	"context"
	"math"

	"capper/internal/capping"
)

// The type Source is a store from which a migration reads users' logs, in the ascending order of users. While a
// migration reads from a Source, no process may write to the store.
type Source interface {
	// Logs returns users who have a log, and the logs of these users. Logs returns at most "most" users, in ascending
	// order, beginning with the first user who is not below "from".
	Logs(ctx context.Context, from capping.UserID, most int) ([]capping.UserID, []capping.Log, error)
	// Messages returns the messages for tokens (hashes of message ids), in the same way as capping.Store.
	Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error)
}

// A walk is a reader that goes through the users of one source store in ascending order.
type walk struct {
	source Source
	users  []capping.UserID
	logs   []capping.Log
	from   capping.UserID // first user of the next portion
	ended  bool           // the source has no next portion
}

// The method "head" returns the next user of the walk (reader of one store). The result "ok" is false at the end of the
// walk.
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

// The method "take" returns the log of the given user, and advances the walk (reader of one store). If the given user
// is not the next user of the walk, the source store has no log of the user, and "take" returns nil.
func (w *walk) take(user capping.UserID) (log capping.Log) {
	if len(w.users) > 0 && w.users[0] == user {
		log = w.logs[0]
		w.users, w.logs = w.users[1:], w.logs[1:]
	}
	return log
}

// The function "lowest" returns the lowest of the next users of all walks (readers of one store each). The result "ok"
// is false when all walks have reached their end.
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
