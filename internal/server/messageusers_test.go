package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit/archive"
	auditjournal "capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/server"
	"capper/internal/testkit"
)

// journaled is the audit of a service, as the service reads it.
type journaled struct {
	*archive.Archive
	*auditjournal.Journal
}

// readAudit adds an audit to the service, which the service reads.
func readAudit(t testing.TB) func(*server.Config) {
	open := withAudit(t, true)
	return func(cfg *server.Config) {
		open(cfg)
		read := archive.New(cfg.Journal.Source(), config.ParsePolicy)
		cfg.Records, cfg.Audit = read, journaled{read, cfg.Journal}
	}
}

// people returns the distinct users of the message on its only channel.
func (s *service) people(id string) *api.MessageUsers {
	s.t.Helper()
	r := s.get(messagePath(id) + "?users=true")
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	found := decodeAs[api.MessageChannels](s.t, r.body)
	require.Empty(s.t, found.Faults)
	require.Len(s.t, found.Channels, 1)
	users := found.Channels[0].Users
	require.NotNil(s.t, users)
	sum := users.Allowed + users.Released + users.Unavailable
	for _, n := range users.Denied {
		sum += n
	}
	require.Equal(s.t, users.Asked, sum, "every user has one outcome")
	require.False(s.t, users.Since.IsZero())
	users.Since = users.Since.Truncate(0)
	return users
}

// TestUsersOfAMessageCountOnce repeats a campaign for the users who were held back, as engines do.
func TestUsersOfAMessageCountOnce(t *testing.T) {
	for kind, open := range map[string]func(t *testing.T, c *testkit.Clock) capping.Store{
		"embedded": func(t *testing.T, c *testkit.Clock) capping.Store { return openStore(t, c.Now) },
		"redis": func(t *testing.T, c *testkit.Clock) capping.Store {
			return openRedis(t, c.Now, testkit.Namespace())
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			clock := testkit.NewClockAt(startOfTest)
			s := newServiceOver(t, open(t, clock), clock, counted(t), readAudit(t))
			s.filter(fields{"message_id": "yesterday", "channel": "push", "user_ids": span(700_000, 700_100)})
			ask := func(from, to uint32) {
				s.filter(fields{"message_id": "wave-demo", "channel": "push", "user_ids": span(from, to)})
			}
			ask(700_000, 700_200)
			for range 9 {
				ask(700_000, 700_100)
			}
			users := s.people("wave-demo")
			require.Equal(t, startOfTest, users.Since)
			all := map[string]api.MessageSegmentUsers{api.NoSegment: {Asked: 200, Allowed: 100, Denied: 100}}
			require.Equal(t, &api.MessageUsers{Asked: 200, Allowed: 100, Denied: map[string]int64{"daily": 100},
				Since: users.Since, Segments: all, Generation: users.Generation}, users)
			require.Equal(t, s.capper.Segments().Generation(), users.Generation)
			answers := s.message("wave-demo").Channels[0]
			require.Equal(t, int64(1100), answers.Asked)
			require.Nil(t, answers.Users, "only asked for")
			require.False(t, answers.FromAudit)

			s.post("/v1/release", fields{"message_id": "wave-demo", "channel": "push",
				"user_ids": span(700_150, 700_200)})
			s.post("/v1/release", fields{"message_id": "wave-demo", "user_ids": span(700_140, 700_160)})
			ask(700_190, 700_200) // given back, and sent again
			users = s.people("wave-demo")
			all[api.NoSegment] = api.MessageSegmentUsers{Asked: 200, Allowed: 50, Released: 50, Denied: 100}
			require.Equal(t, &api.MessageUsers{Asked: 200, Allowed: 50, Released: 50,
				Denied: map[string]int64{"daily": 100}, Since: users.Since, Segments: all,
				Generation: users.Generation}, users)
			require.Equal(t, http.StatusBadRequest, s.get("/v1/messages/wave-demo?users=1").status)
		})
	}
}

// TestUsersOfAMessageBySegment repeats calls for users of several segments, and checks that each user counts once.
func TestUsersOfAMessageBySegment(t *testing.T) {
	t.Parallel()
	s := newService(t, counted(t), readAudit(t))
	for range 3 {
		s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": append(span(50, 320), 9_000_000)})
	}
	s.filter(fields{"message_id": "again", "channel": "push", "user_ids": span(0, 120)})
	s.post("/v1/release", fields{"message_id": "promo", "channel": "push", "user_ids": span(90, 110)})
	require.Equal(t, map[string]api.MessageSegmentUsers{
		"new":         {Asked: 50, Allowed: 40, Released: 10},
		"active":      {Asked: 100, Allowed: 90, Released: 10},
		"vip":         {Asked: 100, Allowed: 100},
		"blocked":     {Asked: 20, Denied: 20},
		api.NoSegment: {Asked: 1, Allowed: 1},
	}, s.people("promo").Segments)
	require.Equal(t, map[string]api.MessageSegmentUsers{
		"new":    {Asked: 100, Allowed: 50, Denied: 50},
		"active": {Asked: 20, Allowed: 20},
	}, s.people("again").Segments)
	require.Equal(t, int64(813), s.message("promo").Channels[0].Asked, "answers")
}

func TestUsersWithoutAnAudit(t *testing.T) {
	t.Parallel()
	s := newService(t, counted(t))
	s.filter(fields{"message_id": "promo", "channel": "push", "user_ids": span(700_000, 700_100)})
	r := s.get("/v1/messages/promo?users=true")
	require.Equal(t, http.StatusOK, r.status)
	require.Nil(t, decodeAs[api.MessageChannels](t, r.body).Channels[0].Users)
}

// TestAMessageOfWithheldUsersExists withholds the only user of each message. The store counts the first thousand of
// such messages, and the audit knows the others.
func TestAMessageOfWithheldUsersExists(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(*testkit.Clock) capping.Store{
		"embedded": func(c *testkit.Clock) capping.Store { return openStore(t, c.Now) },
		"redis":    func(c *testkit.Clock) capping.Store { return openRedis(t, c.Now, testkit.Namespace()) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			clock := testkit.NewClockAt(startOfTest)
			s, _ := newSetServiceOver(t, open(clock), clock, counted(t), readAudit(t))
			ask := func(id string, channel string, users ...uint32) {
				s.filterIDs(fields{"message_id": id, "channel": channel, "user_ids": users})
			}
			ask("solo", "email", 7)
			solo := s.message("solo").Channels[0]
			require.Equal(t, map[string]int64{"suppressed": 1}, solo.Denied)
			require.Equal(t, map[string]int64{"opted-out": 1}, solo.Suppressed)
			require.Equal(t, int64(1), solo.Asked)
			require.Zero(t, solo.Allowed)
			list := s.messages("").Messages
			require.Len(t, list, 1)
			require.Equal(t, solo, list[0])

			for n := range 1000 {
				ask(fmt.Sprint("many-", n), "email", 1000)
			}
			require.Len(t, s.messages("?max=1000").Messages, 1000, "they are counted, as many as there may be")
			ask("late", "email", 3, 1000)
			ask("late", "email", 7)
			late := s.message("late").Channels[0]
			require.True(t, late.FromAudit)
			require.Equal(t, int64(3), late.Asked)
			require.Equal(t, int64(2), late.Calls)
			require.Equal(t, map[string]int64{"suppressed": 3}, late.Denied)
			require.Equal(t, map[string]int64{"opted-out": 3}, late.Suppressed)
			require.Equal(t, []string{"policy-2"}, late.ConfigVersions)
			require.Equal(t, late.Users, s.people("late"))
			require.Equal(t, &api.MessageUsers{Asked: 3, Denied: map[string]int64{"suppressed": 3},
				Suppressed: map[string]int64{"opted-out": 3}, Since: late.Users.Since,
				Segments: late.Users.Segments, Generation: late.Users.Generation}, late.Users)
			require.Equal(t, http.StatusNotFound, s.get("/v1/messages/never").status)
			require.Equal(t, http.StatusNotFound, s.get("/v1/messages/late?namespace=growth").status)
		})
	}
}
