package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// The variable "recorded" is the time of the first send in the store that an old version of capper wrote.
var recorded = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// RunUpgrade checks that capper can use a store that a version without namespaces has created. The function "open"
// opens a store of an old version, with these sends:
//
// - "newsletter" on channel 1 to the users 0 to 569
// - "offer" on channel 2 to the users 0 to 284, one hour later
// - "order-1" without a channel to user 7, another hour later
// - "é", repeated 64 times, on channel 3 to the users 0 to 99, another hour later
func RunUpgrade(t *testing.T, open Open) {
	clock := &Clock{testkit.NewClockAt(recorded.Add(4 * time.Hour))}
	f := &fixture{t, open(t, clock.Now), clock}
	users := make([]capping.UserID, 570)
	for i := range users {
		users[i] = capping.UserID(i)
	}
	f.requireOldLogs()
	resumed := func(message capping.Message, channel capping.Channel, users []capping.UserID, want capping.Outcome) {
		t.Helper()
		f.all(f.filter(on(of(f.batch(message.ID, users, daily(4)), message.Namespace), channel)), want)
	}
	long := strings.Repeat("é", 64)
	resumed(capping.Message{ID: "newsletter"}, 1, users, capping.Replayed)
	resumed(capping.Message{ID: "offer"}, 2, users[:285], capping.Replayed)
	resumed(capping.Message{ID: "order-1"}, 0, users[7:8], capping.Replayed)
	resumed(capping.Message{ID: long}, 3, users[:100], capping.Replayed)
	resumed(capping.Message{ID: "offer"}, 2, users[285:], capping.Allowed) // users without this send before the upgrade
	// With another channel or namespace, the same message id makes another send. The sends that the old version
	// recorded still count for the limits.
	resumed(capping.Message{ID: "newsletter"}, 2, users[8:], capping.Allowed)
	resumed(capping.Message{Namespace: "growth", ID: "newsletter"}, 1, users[8:100], capping.Denied)
	resumed(capping.Message{Namespace: "growth", ID: "newsletter"}, 1, users[100:], capping.Allowed)
	for _, got := range f.releaseOn(capping.Message{ID: "newsletter"}, 1, users...) {
		require.Equal(t, capping.ReleaseDone, got)
	}
	f.knows([]capping.Token{
		capping.Message{ID: "offer"}.Token(), capping.Message{ID: long}.Token(),
		capping.Message{Namespace: "growth", ID: "newsletter"}.Token(),
	}, map[capping.Token]capping.Message{
		capping.Message{ID: "offer"}.Token(): {ID: "offer"}, capping.Message{ID: long}.Token(): {ID: long},
		capping.Message{Namespace: "growth", ID: "newsletter"}.Token(): {Namespace: "growth", ID: "newsletter"},
	})
}

// requireOldLogs checks that the store has not changed a single byte of the logs that an old version of capper wrote.
func (f *fixture) requireOldLogs() {
	f.Helper()
	at := capping.InstantOf(recorded)
	hour := capping.Instant(time.Hour.Milliseconds())
	for user := range capping.UserID(570) {
		want := []capping.Entry{{At: at, Channel: 1, Token: capping.Message{ID: "newsletter"}.Token()}}
		if user < 285 {
			want = append(want, capping.Entry{At: at + hour, Channel: 2, Token: capping.Message{ID: "offer"}.Token()})
		}
		if user == 7 {
			want = append(want, capping.Entry{At: at + 2*hour, Token: capping.Message{ID: "order-1"}.Token()})
		}
		if user < 100 {
			want = append(want, capping.Entry{At: at + 3*hour, Channel: 3,
				Token: capping.Message{ID: strings.Repeat("é", 64)}.Token()})
		}
		require.Equal(f, want, f.log(user).Entries(), "user %d", user)
	}
	messages, err := f.store.Messages(context.Background(), []capping.Token{capping.Message{ID: "newsletter"}.Token(),
		capping.Message{ID: "order-1"}.Token()})
	require.NoError(f, err)
	require.Equal(f, map[capping.Token]capping.Message{
		capping.Message{ID: "newsletter"}.Token(): {ID: "newsletter"},
		capping.Message{ID: "order-1"}.Token():    {ID: "order-1"},
	}, messages)
}
