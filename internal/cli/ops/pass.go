package ops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"capper/internal/capping"
)

const (
	portion = 4096 // number of users whose logs are merged and read back together
	readers = 64   // number of simultaneous reads of logs
	patient = time.Minute
	margin  = 10 * time.Second // a send that expires within this time may be missing in one store
)

// The type target is the store to which a migration copies the logs of users.
type target interface {
	capping.Merger
	Log(ctx context.Context, user capping.UserID) (capping.Log, error)
	Erase(ctx context.Context, user capping.UserID) error
}

// The type Pass copies the logs of all users one time, from the embedded store to the target store in Redis. The fields
// Now and Target are required.
type Pass struct {
	Now        Source   // logs that the target must contain after the pass
	Last       Source   // logs of the last finished pass; nil: no finished pass
	Unfinished []Source // logs of later passes that did not finish
	Target     target
	Images     bool                 // user ids are not dense
	Retention  time.Duration        // longest window of the policy
	Clock      func() time.Time     // nil: time.Now
	Progress   func(result *Result) // called from time to time; nil: no progress
}

// Result counts the users and sends that a migration pass has copied and compared.
type Result struct {
	Users    int64 `json:"users"`    // users with at least one send that has not expired
	Sends    int64 `json:"sends"`    // sends in these logs
	Same     int64 `json:"same"`     // users whose log is unchanged since the last pass and was not read back
	Verified int64 `json:"verified"` // users whose log was read back and found equal
	Replaced int64 `json:"replaced"` // verified users whose log in the target was replaced
}

// The method Run copies and compares the logs of all users: one pass of the migration. If Run returns no error, each
// user has the same log in the target store and in the source store p.Now. Callers may repeat Run.
func (p *Pass) Run(ctx context.Context) (result Result, err error) {
	if p.Clock == nil {
		p.Clock = time.Now
	}
	walks := []*walk{{source: p.Now}}
	if p.Last != nil {
		walks = append(walks, &walk{source: p.Last})
	}
	for _, source := range p.Unfinished {
		walks = append(walks, &walk{source: source})
	}
	for {
		batch := &batch{pass: p, horizon: capping.InstantOf(p.Clock().Add(margin - p.Retention))}
		for len(batch.users) < portion {
			user, ok, err := lowest(ctx, walks)
			if err != nil {
				return result, err
			}
			if !ok {
				return result, batch.settle(ctx, &result)
			}
			logs := make([]capping.Log, len(walks))
			for i, w := range walks {
				logs[i] = w.take(user)
			}
			same := p.Last != nil && len(p.Unfinished) == 0 && bytes.Equal(logs[0], logs[1])
			batch.add(&result, user, logs, same)
		}
		if err := batch.settle(ctx, &result); err != nil {
			return result, err
		}
		if p.Progress != nil {
			p.Progress(&result)
		}
	}
}

// The method "name" returns the text that identifies a user in errors.
func (p *Pass) name(user capping.UserID) string {
	if p.Images {
		return fmt.Sprintf("image %016x", uint64(user))
	}
	return fmt.Sprintf("user %d", user)
}

// A batch holds some users whose logs a migration pass copies together.
type batch struct {
	pass    *Pass
	horizon capping.Instant
	users   []capping.UserID
	logs    []capping.Log
	had     [][]capping.Log // each user's logs in the sources of earlier passes
}

// The method "add" adds a user to the batch, with the user's logs in all source stores. The first element of logs is
// from the source Now.
func (b *batch) add(result *Result, user capping.UserID, logs []capping.Log, same bool) {
	log := logs[0].Live(b.horizon)
	if log.Len() > 0 {
		result.Users++
		result.Sends += int64(log.Len())
	}
	if same {
		result.Same++
		return
	}
	b.users, b.logs, b.had = append(b.users, user), append(b.logs, log), append(b.had, logs[1:])
}

// The method "settle" merges the logs of the users in the batch into the target store. The method "settle" then reads
// each log back and compares the log.
func (b *batch) settle(ctx context.Context, result *Result) error {
	if len(b.users) == 0 {
		return nil
	}
	if err := b.merge(ctx, b.users, b.logs); err != nil {
		return err
	}
	replaced := make([]bool, len(b.users))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range b.users {
		group.Go(func() (err error) {
			replaced[i], err = b.verify(ctx, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, was := range replaced {
		result.Verified++
		if was {
			result.Replaced++
		}
	}
	return nil
}

func (b *batch) merge(ctx context.Context, users []capping.UserID, logs []capping.Log) error {
	m := &capping.Merge{Retention: b.pass.Retention}
	tokens := map[capping.Token]bool{}
	for i, log := range logs {
		if log.Len() == 0 {
			continue
		}
		m.Users, m.Logs = append(m.Users, users[i]), append(m.Logs, log)
		for k := range log.Len() {
			tokens[log.Entry(k).Token] = true
		}
	}
	if len(m.Users) == 0 {
		return nil
	}
	var err error
	if m.Messages, err = b.messages(ctx, tokens); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	if err := b.pass.Target.Merge(ctx, m, make([]capping.Merged, len(m.Users))); err != nil {
		return fmt.Errorf("copy the recorded sends of the users between %s and %s into Redis: %w",
			b.pass.name(m.Users[0]), b.pass.name(m.Users[len(m.Users)-1]), err)
	}
	return nil
}

// The method "messages" returns the messages that the source store Pass.Now contains for the tokens (hashes of message
// ids).
func (b *batch) messages(ctx context.Context, tokens map[capping.Token]bool) (messages []capping.Message, err error) {
	list := make([]capping.Token, 0, len(tokens))
	for token := range tokens {
		list = append(list, token)
	}
	found, err := b.pass.Now.Messages(ctx, list)
	for _, message := range found {
		messages = append(messages, message)
	}
	return messages, err
}

// ErrDiffers reports that the target store contains a send that no source ever contained, or lacks a send that the pass
// has written. The probable cause of ErrDiffers is another program that writes to the target store.
var ErrDiffers = errors.New(
	"a user's sends in Redis differ from the sends that the migration copied: a service may already use this Redis")

// The method "verify" reads the log of a user back from the target store, and compares this log with the user's log in
// the source store Pass.Now. If the target has a log of the user from an earlier pass, the method "verify" replaces
// this log.
func (b *batch) verify(ctx context.Context, i int) (replaced bool, err error) {
	user, want := b.users[i], b.logs[i]
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	found, err := b.read(ctx, user)
	if err != nil || bytes.Equal(found, want) {
		return false, err
	}
	if !of(found, append(b.had[i], want)) {
		return false, fmt.Errorf("%s: %w", b.pass.name(user), ErrDiffers)
	}
	if err := b.pass.Target.Erase(ctx, user); err != nil {
		return true, fmt.Errorf("erase the log of %s: %w", b.pass.name(user), err)
	}
	if err := b.merge(ctx, []capping.UserID{user}, []capping.Log{want}); err != nil {
		return true, err
	}
	if found, err = b.read(ctx, user); err == nil && !bytes.Equal(found, want) {
		err = fmt.Errorf("%s: %w", b.pass.name(user), ErrDiffers)
	}
	return true, err
}

// The method "read" returns the user's log in the target store of the migration.
func (b *batch) read(ctx context.Context, user capping.UserID) (capping.Log, error) {
	found, err := b.pass.Target.Log(ctx, user)
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", b.pass.name(user), err)
	}
	return found.Live(b.horizon), nil
}

// The function "of" reports whether each send in the argument "log" is also in one of the logs in the argument "logs".
func of(log capping.Log, logs []capping.Log) bool {
	known := map[capping.Entry]bool{}
	for _, one := range logs {
		for k := range one.Len() {
			known[one.Entry(k)] = true
		}
	}
	for k := range log.Len() {
		if !known[log.Entry(k)] {
			return false
		}
	}
	return true
}
