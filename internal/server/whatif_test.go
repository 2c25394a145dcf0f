package server_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
	"capper/internal/whatif"
)

// replaying adds a replay to a server.
func replaying(replay server.Replay) func(*server.Config) {
	return func(cfg *server.Config) { cfg.Replay = replay }
}

// blast returns the record of a call that sent a message on push to users of vip an hour before the start of the test.
func blast(message capping.Message, users ...uint32) *audit.Record {
	return &audit.Record{
		Kind: audit.Filter, At: capping.InstantOf(startOfTest.Add(-time.Hour)), Message: message, Channel: 1,
		Instance: "a", Generation: "g", Config: "policy-1",
		Groups:   []audit.Group{{Outcome: audit.Allowed, Users: bitmap.OfSorted(users)}},
		Segments: []audit.SegmentCount{{Name: "vip", Requested: len(users), Allowed: len(users)}},
	}
}

// ofRecords returns a replay of the records, whose users were judged by testPolicy and by the segments of newService.
func ofRecords(records ...*audit.Record) server.Replay {
	return func(ctx context.Context, cfg whatif.Config) (*whatif.Result, error) {
		cfg.Policies = func(string) (*capping.Policy, error) { return testPolicy(), nil }
		cfg.Generations = func(string) (capping.Segments, error) {
			return &testSegments{names: []string{"new", "active", "vip", "blocked", "free"}, lookup: byHundred}, nil
		}
		var all iter.Seq2[*audit.Record, error] = func(yield func(*audit.Record, error) bool) {
			for i, r := range records {
				r.Sequence = uint64(i) + 1
				if !yield(r, nil) {
					return
				}
			}
		}
		return whatif.Run(ctx, all, cfg)
	}
}

func TestWhatIf(t *testing.T) {
	t.Parallel()
	s := newService(t, replaying(ofRecords(blast(capping.Message{ID: "a"}, 200, 201),
		blast(capping.Message{Namespace: "growth", ID: "b"}, 202))), counted(t))
	s.setTitle("a", `{"title": "Spring"}`)
	r := s.post("/v1/whatif", `{"limits": [{"segment": "vip", "limit": "push-gap", "max": 0}]}`)
	require.Equal(t, http.StatusOK, r.status, "%s", r.body)
	got := decodeAs[api.WhatIf](t, r.body)
	require.EqualValues(t, []int64{3, 0, 3, 3}, []int64{got.Total.Before.Sends, got.Total.After.Sends, got.Total.Lost,
		got.Users.Less})
	require.Equal(t, []api.WhatIfStep{{More: -1, Users: 3}}, got.Users.By)
	require.Len(t, got.Campaigns, 2)
	for _, row := range got.Campaigns {
		require.Equal(t, map[string]string{"a": "Spring"}[row.Name], row.Title)
	}
	require.Nil(t, got.Others)
	require.Equal(t, "policy-1", got.ConfigVersion)

	every := decodeAs[api.WhatIf](t, s.post("/v1/whatif",
		`{"limits": [{"limit": "push-gap", "remove": true}], "campaigns": 1}`).body)
	require.Zero(t, every.Users.Less)
	require.Len(t, every.Campaigns, 1)
	require.EqualValues(t, 3, every.Campaigns[0].Before.Sends+every.Others.Before.Sends)
}

// TestWhatIfOfANamespace checks that a key with a namespace sees the names of its own campaigns only.
func TestWhatIfOfANamespace(t *testing.T) {
	t.Parallel()
	s := newService(t, replaying(ofRecords(blast(capping.Message{ID: "a"}, 200, 201),
		blast(capping.Message{Namespace: "growth", ID: "b"}, 202))), func(cfg *server.Config) {
		cfg.Access = gate.Rules{Keys: []gate.Key{
			inNamespace(key("g1.growth", "growth", gate.ScopeRead), "growth"),
			key("e1.engine", "engine", gate.ScopeFilter),
		}}
	})
	const body = `{"limits": [{"segment": "vip", "limit": "push-gap", "max": 0}]}`
	s.key = "g1.growth"
	got := decodeAs[api.WhatIf](t, s.post("/v1/whatif", body).body)
	require.Len(t, got.Campaigns, 1)
	require.Equal(t, "b", got.Campaigns[0].Name)
	require.EqualValues(t, 2, got.Others.Lost)
	s.key = "e1.engine"
	require.Equal(t, http.StatusForbidden, s.post("/v1/whatif", body).status)
}

func TestWhatIfRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t, replaying(ofRecords()))
	many := strings.TrimSuffix(strings.Repeat(`{"limit":"daily","max":1},`, api.MaxLimitChanges+1), ",")
	for body, want := range map[string]badBody{
		`{}`:                               {field: "limits", message: "is required"},
		`{"limits": []}`:                   {field: "limits", message: "is required"},
		`{"limits": {}}`:                   {field: "limits", message: "is not an array of changes"},
		`{"limits": [1]}`:                  {field: "limits[0]", message: "is not an object"},
		`{"limits": [{"max": 1}]}`:         {field: "limits[0].limit", message: "is required"},
		`{"limits": [{"limit": "daily"}]}`: {field: "limits[0].max", message: "is required, unless"},
		`{"limits": [{"limit": "daily", "max": 1, "remove": true}]}`: {field: "limits[0].max",
			message: "must not be combined with remove"},
		`{"limits": [{"limit": "daily", "max": -1}]}`:   {field: "limits[0].max", message: "from 0 to 1000"},
		`{"limits": [{"limit": "daily", "max": 1001}]}`: {field: "limits[0].max", message: "from 0 to 1000"},
		`{"limits": [{"limit": "daily", "max": 1.5}]}`:  {field: "limits[0].max", message: "from 0 to 1000"},
		`{"limits": [{"limit": "monthly", "max": 1}]}`: {field: "limits[0].limit",
			message: `no segment has a limit "monthly"`},
		`{"limits": [{"limit": "daily", "max": 1}, {"segment": "gold", "limit": "daily", "max": 1}]}`: {
			field: "limits[1].segment", message: `"gold" is not a segment`},
		`{"limits": [{"segment": "vip", "limit": "daily", "max": 1}]}`: {field: "limits[0].limit",
			message: `the segment vip has no limit "daily"`},
		`{"limits": [{"limit": "daily", "max": 1}, {"segment": "default", "limit": "daily", "max": 1}, ` +
			`{"limit": "daily", "max": 2}]}`: {field: "limits[2].limit", message: `"daily" is changed twice`},
		`{"limits": [` + many + `]}`: {field: "limits", message: "at most 100 changes"},
		`{"limits": [{"limit": "daily", "max": 1}], "since": "yesterday"}`: {field: "since",
			message: "is not an RFC 3339 time"},
		`{"limits": [{"limit": "daily", "max": 1}], "until": "2037-11-20T09:14:00Z"}`: {field: "until",
			message: "2037-11-20T09:14:00Z is in the future: the time is now 2037-11-20T09:12:44.120Z"},
		`{"limits": [{"limit": "daily", "max": 1}], "generation": "nosuch"}`: {field: "generation",
			message: `"nosuch" must be a generation name such as 2026`},
		`{"limits": [{"limit": "daily", "max": 1}], "since": "2037-11-20T09:12:45Z"}`: {field: "since",
			message: "is not before until"},
		`{"limits": [{"limit": "daily", "max": 1}], "since": "2037-01-01T00:00:00Z"}`: {field: "since",
			message: "more than 92 days"},
		`{"limits": [{"limit": "daily", "max": 1}], "campaigns": 1001}`: {field: "campaigns", message: "from 0 to 1000"},
		`{"limits": [{"limit": "daily", "max": 1}], "user_ids": [1]}`:   {field: "user_ids", message: "no such field"},
	} {
		requireRefused(t, s.post("/v1/whatif", body), http.StatusBadRequest, "invalid_request", want)
	}
	const good = `{"limits": [{"limit": "daily", "max": 1}]}`
	for name, refused := range map[string]struct {
		err    error
		status int
		code   api.Code
		want   badBody
	}{
		"too much": {&whatif.BoundError{}, http.StatusRequestEntityTooLarge, api.CodeTooLarge, badBody{field: "since",
			message: "50000000 decisions, or their replay needs more than 512 MiB"}},
		"too long": {context.DeadlineExceeded, http.StatusRequestEntityTooLarge, api.CodeTooLarge, badBody{
			field: "since", message: "took too long"}},
		"a generation is gone": {fmt.Errorf("generation g1: %w", objects.ErrNotFound), http.StatusGone, api.CodeGone,
			badBody{field: "generation", message: "name a generation that exists"}},
		"a policy is gone": {fmt.Errorf("policy: %w", archive.ErrNoPolicy), http.StatusServiceUnavailable,
			api.CodeUnavailable, badBody{message: "the audit could not be read"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bounds := func(cfg *server.Config) {
				if name == "too long" {
					cfg.Bounds.CallTimeout = time.Nanosecond
				}
			}
			s := newService(t, bounds, replaying(func(ctx context.Context, _ whatif.Config) (*whatif.Result, error) {
				if name == "too long" {
					<-ctx.Done()
				}
				return nil, refused.err
			}))
			requireRefused(t, s.post("/v1/whatif", good), refused.status, string(refused.code), refused.want)
		})
	}
	requireRefused(t, newService(t).post("/v1/whatif", good), http.StatusConflict, "conflict",
		badBody{message: "no audit is configured"})
}

// TestAReplayIsBounded checks that a replay ends at a bound.
func TestAReplayIsBounded(t *testing.T) {
	t.Parallel()
	replay := ofRecords(blast(capping.Message{ID: "a"}, 200, 201), blast(capping.Message{ID: "b"}, 202))
	for _, cfg := range []whatif.Config{{MaxDecisions: 1}, {MaxBytes: 1}} {
		var bound *whatif.BoundError
		_, err := replay(t.Context(), cfg)
		require.ErrorAs(t, err, &bound)
		require.EqualValues(t, 2, bound.Decisions)
	}
}

// TestOneWhatIfAtATime checks that a key has one replay at a time, and that a replay ends when its caller leaves.
func TestOneWhatIfAtATime(t *testing.T) {
	t.Parallel()
	began, ended := make(chan string, 9), make(chan error, 9)
	s := newService(t, replaying(func(ctx context.Context, cfg whatif.Config) (*whatif.Result, error) {
		if cfg.Generation != "" { // a call that waits until its caller leaves
			began <- cfg.Generation[len(cfg.Generation)-1:]
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}
		return &whatif.Result{}, nil
	}), func(cfg *server.Config) {
		cfg.Bounds.CallTimeout = time.Hour
		cfg.Access = gate.Rules{Keys: []gate.Key{key("a1.a", "a", gate.ScopeRead), key("b1.b", "b", gate.ScopeRead),
			key("c1.c", "c", gate.ScopeRead)}}
	})
	const good = `{"limits": [{"limit": "daily", "max": 1}]}`
	leave := func(key string) context.CancelFunc {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.http.URL+"/v1/whatif",
				strings.NewReader(`{"limits": [{"limit": "daily", "max": 1}], "generation": "20261120T101500.000Z-0000000`+
					key[:1]+`"}`))
			if err == nil {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+key)
				var answer *http.Response
				if answer, err = http.DefaultClient.Do(r); err == nil {
					_ = answer.Body.Close()
				}
			}
		}()
		require.Equal(t, key[:1], <-began)
		return cancel
	}
	leaveA := leave("a1.a")
	s.key = "a1.a"
	requireRefused(t, s.post("/v1/whatif", good), http.StatusServiceUnavailable, "overloaded",
		badBody{message: "another what-if of this key is not finished"})
	s.key = "b1.b"
	require.Equal(t, http.StatusOK, s.post("/v1/whatif", good).status)
	leaveB := leave("b1.b")
	s.key = "c1.c"
	requireRefused(t, s.post("/v1/whatif", good), http.StatusServiceUnavailable, "overloaded",
		badBody{message: "other keys' what-ifs are not finished"})
	for _, leave := range []context.CancelFunc{leaveA, leaveB} {
		leave()
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	testkit.Eventually(t, func() bool { return s.post("/v1/whatif", good).status == http.StatusOK })
}
