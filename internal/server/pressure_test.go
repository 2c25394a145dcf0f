package server_test

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/pressure"
	"capper/internal/server"
	"capper/internal/server/gate"
)

// pressed is a service with an audit of two campaigns: spring of the team growth took user 7 from basket.
func pressed(t *testing.T, change ...func(*server.Config)) *service {
	at := func(ago time.Duration) capping.Instant { return capping.InstantOf(startOfTest.Add(-ago)) }
	group := func(o audit.Outcome, limit string, users ...uint32) audit.Group {
		return audit.Group{Outcome: o, Limit: limit, Users: bitmap.Of(users...)}
	}
	records := []*audit.Record{
		{Kind: audit.Filter, Instance: "00000000000000aa", Sequence: 1, At: at(8 * 24 * time.Hour), Channel: 1,
			Message: capping.Message{Namespace: "growth", ID: "winter"},
			Groups:  []audit.Group{group(audit.Allowed, "", 7)}},
		{Kind: audit.Filter, Instance: "00000000000000aa", Sequence: 2, At: at(time.Hour), Channel: 1,
			Message: capping.Message{Namespace: "growth", ID: "spring"},
			Groups:  []audit.Group{group(audit.Allowed, "", 7, 8)}},
		{Kind: audit.Filter, Instance: "00000000000000aa", Sequence: 3, At: at(time.Minute), Channel: 1,
			Message: capping.Message{ID: "basket"},
			Groups:  []audit.Group{group(audit.Denied, "daily", 7), group(audit.Allowed, "", 9)}},
	}
	return newService(t, append([]func(*server.Config){func(cfg *server.Config) {
		cfg.Pressure = func(ctx context.Context, of pressure.Config) (*pressure.Result, error) {
			of.Policies = func(string) (*capping.Policy, error) { return of.Policy, nil }
			of.MinTaken = 1
			return pressure.Run(ctx, func(from capping.Instant) iter.Seq2[*audit.Record, error] {
				return func(yield func(*audit.Record, error) bool) {
					for _, r := range records {
						if r.At >= from && !yield(r, nil) {
							return
						}
					}
				}
			}, of)
		}
	}}, change...)...)
}

func (s *service) pressure(query string) *api.Pressure {
	s.t.Helper()
	r := s.get("/v1/pressure" + query)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	var p api.Pressure
	require.NoError(s.t, json.Unmarshal(r.body, &p))
	return &p
}

func TestPressure(t *testing.T) {
	t.Parallel()
	s := pressed(t)
	p := s.pressure("")
	require.Len(t, p.Weeks, 5)
	require.Equal(t, "all", p.People[0].By)
	require.Equal(t, []int64{3, 0}, p.People[0].Weeks[0].Got[:2])
	require.Equal(t, int64(1), p.People[0].Weeks[1].Got[0])
	require.Equal(t, []api.PressureHeld{{
		PressureMessage: api.PressureMessage{MessageID: "basket", Channel: "push"}, Users: 1,
		TakenBy: []api.PressureTaken{{Users: 1,
			PressureMessage: api.PressureMessage{MessageID: "spring", Namespace: "growth", Channel: "push"}}},
	}}, p.HeldBack)
	require.Len(t, p.Campaigns, 3)

	growth := s.pressure("?namespace=growth&weeks=1&max=1&channel=push")
	require.Equal(t, "push", growth.Channel)
	require.Equal(t, []int64{2}, growth.Campaigns[0].Messages)
	require.Len(t, growth.Campaigns, 1)
	require.Equal(t, int64(2), growth.People[0].Weeks[0].Messages)

	before := s.pressure("?until=2037-11-13&weeks=1")
	require.Equal(t, int64(1), before.People[0].Weeks[0].Messages)

	list := s.pressure("?segment=default&limit=daily")
	require.Equal(t, []uint32{7, 8, 9}, list.AtLimit.UsersBitmap.ToArray())
}

func TestPressureRejectsWhatItCannotCount(t *testing.T) {
	t.Parallel()
	s := pressed(t)
	for query, field := range map[string]string{
		"?weeks=0": "weeks", "?weeks=28": "weeks", "?until=tomorrow": "until", "?until=2099-01-01": "until",
		"?channel=fax": "channel", "?max=0": "max", "?limit=daily": "limit", "?segment=none": "segment",
		"?segment=default&limit=none": "limit", "?days=1": "days",
	} {
		r := s.get("/v1/pressure" + query)
		require.Equal(t, http.StatusBadRequest, r.status, query)
		require.Equal(t, field, r.failure(t).Error.Field, query)
	}
	require.Equal(t, http.StatusConflict, newService(t).get("/v1/pressure").status, "there is no audit")
}

// TestPressureHidesCampaignsOfOthers checks that a key with a namespace sees no message ids and titles of other
// namespaces.
func TestPressureHidesCampaignsOfOthers(t *testing.T) {
	t.Parallel()
	s := pressed(t, counted(t), func(cfg *server.Config) {
		growth := key("n1.secret-of-growth-team", "crm", gate.ScopeRead, gate.ScopeFilter)
		growth.Namespace = "growth"
		other := key("n2.secret-of-another-team", "other", gate.ScopeRead)
		other.Namespace = "other"
		cfg.Access = gate.Rules{Keys: append(testKeys(), growth, other)}
	})
	require.Equal(t, http.StatusUnauthorized, s.get("/v1/pressure").status)
	s.key = "f1.secret-of-the-engine"
	require.Equal(t, http.StatusForbidden, s.get("/v1/pressure").status)
	s.key = "n1.secret-of-growth-team"
	s.setTitle("spring", `{"title": "Spring of growth"}`)
	p := s.pressure("?weeks=2")
	var named []string
	for _, c := range p.Campaigns {
		named = append(named, c.Namespace+"/"+c.MessageID+c.Title)
	}
	require.ElementsMatch(t, []string{"growth/springSpring of growth", "growth/winter", "/"}, named)
	require.Empty(t, p.HeldBack, "basket is of no team")
	require.Equal(t, http.StatusForbidden, s.get("/v1/pressure?namespace=other").status)
	s.key = "n2.secret-of-another-team"
	p = s.pressure("?weeks=2")
	require.Len(t, p.Campaigns, 2, "one row for each other namespace")
	require.Equal(t, []int64{2, 1}, p.Campaigns[0].Messages)
	require.NotContains(t, string(s.get("/v1/pressure?weeks=2").body), "Spring of growth")
}

// TestPressureIsCountedOnceAtATime checks that a key has one count at a time, and that a count ends with its caller.
func TestPressureIsCountedOnceAtATime(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	s := newService(t, func(cfg *server.Config) {
		cfg.Pressure = func(ctx context.Context, _ pressure.Config) (*pressure.Result, error) {
			close(begun)
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-begun
		defer leave()
		if r := s.get("/v1/pressure?weeks=2"); r.status != http.StatusServiceUnavailable {
			t.Errorf("a second count is answered with %d", r.status)
		}
	}()
	_, err := s.http.Client().Do(s.request(http.MethodGet, "/v1/pressure", "").WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	<-ended
}
