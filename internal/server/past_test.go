package server

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

var now = time.Date(2037, 11, 20, 12, 0, 0, 0, time.UTC)

// recorded holds records in the order of time, followed by an error.
type recorded struct {
	list []*audit.Record
	err  error
}

func (r recorded) Records(_ context.Context, q archive.Query) iter.Seq2[*audit.Record, error] {
	return func(yield func(*audit.Record, error) bool) {
		for _, one := range r.list {
			if one.At >= q.Since && (q.Until == 0 || one.At < q.Until) &&
				(q.User == nil || archive.GroupOf(one, *q.User) != nil) && !yield(one, nil) {
				return
			}
		}
		if r.err != nil {
			yield(nil, r.err)
		}
	}
}

func auditCall(ago time.Duration, kind audit.Kind, outcome audit.Outcome, limit string, users ...uint32) *audit.Record {
	return &audit.Record{
		Kind: kind, At: capping.InstantOf(now.Add(-ago)), Message: capping.Message{ID: "promo"}, Channel: 1,
		Client: "crm", Generation: "g", Config: "c",
		Groups: []audit.Group{{Outcome: outcome, Limit: limit, Users: bitmap.Of(users...)}},
	}
}

func reader(r AuditRecords) *auditReader {
	return &auditReader{Records: r,
		Policy: func() *capping.Policy { return &capping.Policy{Channels: map[string]capping.Channel{"push": 1}} }}
}

func TestDecisionsOfAUser(t *testing.T) {
	t.Parallel()
	r := reader(recorded{list: []*audit.Record{
		auditCall(
			10*24*time.Hour,
			audit.Filter,
			audit.Denied,
			"daily",
			7,
		), auditCall(3*24*time.Hour, audit.Filter, audit.Denied,
			"daily", 7, 8), auditCall(time.Hour, audit.Filter, audit.Allowed, "", 7),
	}})
	got, err := r.User(t.Context(), "", 7, now.Add(-7*24*time.Hour), now)
	require.NoError(t, err)
	require.False(t, got.More)
	require.True(t, got.Since.Equal(now.Add(-7*24*time.Hour)))
	require.Len(t, got.Decisions, 2, "oldest first, none before since")
	require.Equal(t, api.Decision{
		At: now.Add(-3 * 24 * time.Hour), Kind: "filter", Outcome: "denied", MessageID: "promo", Channel: "push",
		Limit: "daily", Client: "crm", Generation: "g", ConfigVersion: "c",
	}, got.Decisions[0])
	require.Equal(t, "allowed", got.Decisions[1].Outcome)
}

func TestTooManyDecisionsAreCut(t *testing.T) {
	t.Parallel()
	var list []*audit.Record
	for i := range mostDecisions + 10 {
		list = append(
			list,
			auditCall(time.Duration(mostDecisions+10-i)*time.Second, audit.Filter, audit.Denied, "daily", 7),
		)
	}
	got, err := reader(recorded{list: list}).User(t.Context(), "", 7, now.Add(-24*time.Hour), now)
	require.NoError(t, err)
	require.True(t, got.More)
	require.Len(t, got.Decisions, mostDecisions)
	require.Equal(t, got.Decisions[0].At, got.Since)
}

func TestUsersOfAMessageByWhatIsSaidLast(t *testing.T) {
	t.Parallel()
	r := reader(recorded{err: &archive.FileError{Key: "records/x.audit", Err: errors.New("cut short")},
		list: []*audit.Record{
			auditCall(
				5*time.Second,
				audit.Filter,
				audit.Denied,
				"daily",
				1,
				2,
				3,
			), auditCall(4*time.Second, audit.Filter,
				audit.Allowed, "", 3, 4, 5, 6), auditCall(3*time.Second, audit.Filter, audit.Denied, "quiet", 2),
			auditCall(2*time.Second, audit.Release, audit.Released, "", 5), auditCall(time.Second, audit.Filter,
				audit.Unavailable, "", 9), auditCall(time.Second, audit.Filter, audit.Replayed, "", 4),
		}})
	got, err := r.Message(t.Context(), capping.Message{ID: "promo"}, 1)
	require.NoError(t, err)
	require.Equal(t, []uint32{3, 4, 6}, got.AllowedBitmap.ToArray())
	require.Equal(t, []uint32{1}, got.DeniedBitmaps["daily"].ToArray())
	require.Equal(t, []uint32{2}, got.DeniedBitmaps["quiet"].ToArray())
	require.Equal(t, []uint32{5}, got.ReleasedBitmap.ToArray())
	require.Equal(t, []uint32{9}, got.UnavailableBitmap.ToArray())
	require.Len(t, got.Faults, 1, "a file that cannot be read is told, and the rest is answered")
}

func TestWithoutAnAuditAndWithABrokenOne(t *testing.T) {
	t.Parallel()
	for r, code := range map[*auditReader]api.Code{reader(nil): api.CodeConflict,
		reader(recorded{err: errors.New("no such host")}): api.CodeUnavailable} {
		_, err := r.User(t.Context(), "", 7, now.Add(-time.Hour), now)
		require.Equal(t, code, wire.FailureOf(err).Code)
		_, err = r.Message(t.Context(), capping.Message{ID: "promo"}, 1)
		require.Equal(t, code, wire.FailureOf(err).Code)
		_, err = r.MessageIDs(t.Context(), capping.Message{ID: "promo"}, 1, nil)
		require.Equal(t, code, wire.FailureOf(err).Code)
	}
}

// TestUsersOfAMessageAreTheSameByImage gives random records of a message to both forms of the answer.
func TestUsersOfAMessageAreTheSameByImage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := []audit.Outcome{audit.Allowed, audit.Replayed, audit.Denied, audit.Unavailable, audit.Released,
		audit.Absent}
	image := func(user uint32) capping.UserID { return capping.UserID(user) * 0x9e3779b97f4a7c15 }
	name := func(dst []byte, user capping.UserID) []byte { // the factor has an inverse
		return strconv.AppendUint(dst, uint64(user*0xf1de83e19937733d), 10)
	}
	for range 50 {
		var dense, wide []*audit.Record
		for n := range 20 {
			outcome, limit := outcomes[random.IntN(len(outcomes))], ""
			if outcome == audit.Denied {
				limit = []string{"daily", "weekly"}[random.IntN(2)]
			}
			var users []uint32
			for range 1 + random.IntN(8) {
				users = append(users, random.Uint32N(30))
			}
			r := auditCall(time.Duration(100-n)*time.Second, audit.Filter, outcome, limit, users...)
			dense = append(dense, r)
			other := *r
			other.Groups = []audit.Group{{Outcome: outcome, Limit: limit}}
			for user := range r.Groups[0].Users.All() {
				other.Groups[0].Images = append(other.Groups[0].Images, image(user))
			}
			slices.Sort(other.Groups[0].Images)
			wide = append(wide, &other)
		}
		want, err := reader(recorded{list: dense}).Message(t.Context(), capping.Message{ID: "promo"}, 1)
		require.NoError(t, err)
		got, err := reader(recorded{list: wide}).MessageIDs(t.Context(), capping.Message{ID: "promo"}, 1, name)
		require.NoError(t, err)
		texts := func(b api.Bitmap) (list []string) {
			list = []string{}
			if b.Bitmap != nil {
				for _, user := range b.ToArray() {
					list = append(list, strconv.Itoa(int(user)))
				}
			}
			return list
		}
		require.ElementsMatch(t, texts(want.AllowedBitmap), got.Allowed)
		require.ElementsMatch(t, texts(want.ReleasedBitmap), got.Released)
		require.ElementsMatch(t, texts(want.UnavailableBitmap), got.Unavailable)
		for _, limit := range []string{"daily", "weekly"} {
			require.ElementsMatch(t, texts(want.DeniedBitmaps[limit]), got.Denied[limit])
		}
	}
}
