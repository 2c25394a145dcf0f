package console

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

var now = time.Date(2026, 11, 20, 9, 12, 44, 0, time.UTC)

func fine() *api.Status {
	return &api.Status{
		Ready: true, Store: api.StoreStatus{Kind: "redis", State: "ok", Fleet: &api.Fleet{Instances: 3}},
		Segments: api.SegmentsStatus{Generation: "g", CreatedAt: now.Add(-time.Hour), Origin: "source"},
		Config:   api.ConfigStatus{Version: "v", LoadedAt: now.Add(-time.Minute)},
		Audit:    &api.AuditStatus{To: "var/audit", State: "ok"},
	}
}

func TestEachTroubleHasASentenceAndSomethingToDo(t *testing.T) {
	t.Parallel()
	for _, s := range states(fine(), now) {
		require.Equal(t, "good", s.Class, s.Part)
	}
	whole := conditionOf(states(fine(), now))
	require.Equal(t, []any{"good", "Everything works."}, []any{whole.Class, whole.Line})
	require.Empty(t, whole.Look)
	for name, c := range map[string]struct {
		part, class string
		change      func(s *api.Status)
	}{
		"not ready": {"Service", "bad", func(s *api.Status) { s.Ready = false }},
		"the store is down": {"Store", "bad", func(s *api.Status) {
			s.Store.State, s.Store.Error = "down",
				"dial: refused"
		}},
		"degraded": {"Store", "warn", func(s *api.Status) {
			s.Store.State, s.Store.Error = "degraded",
				"a node is away"
		}},
		"embedded, full disk": {"Store", "warn", func(s *api.Status) {
			s.Store = api.StoreStatus{Kind: "embedded", Path: "p", State: "degraded", Error: "no space"}
		}},
		"a warning": {"Store", "warn",
			func(s *api.Status) { s.Store.Warnings = []string{"no append-only file"} }},
		"others differ": {"Instances", "warn",
			func(s *api.Status) { s.Store.Fleet.Differing = map[string]int{"limits": 2} }},
		"sets are missing": {"Segments", "bad", func(s *api.Status) { s.Segments.Missing = []string{"opted-out"} }},
		"no refresh":       {"Segments", "warn", func(s *api.Status) { s.Segments.Error = "no such bucket" }},
		"from the cache":   {"Segments", "warn", func(s *api.Status) { s.Segments.Origin = "cache" }},
		"reload refused":   {"Configuration", "warn", func(s *api.Status) { s.Config.Error = "line 3: must be" }},
		"a problem": {"Configuration", "warn",
			func(s *api.Status) { s.Config.Problems = []string{"no default limits"} }},
		"the audit is behind": {"Audit", "warn", func(s *api.Status) {
			s.Audit.State, s.Audit.Error = "behind",
				"no route"
		}},
		"the audit loses": {"Audit", "bad", func(s *api.Status) {
			s.Audit.State, s.Audit.Error = "losing",
				"no space"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status := fine()
			c.change(status)
			worst := states(status, now)[0]
			require.Equal(t, []string{c.part, c.class}, []string{worst.Part, worst.Class}, "the worst stands first")
			require.NotEmpty(t, worst.Do)
			require.True(t, strings.HasSuffix(worst.What, "."), worst.What)
			require.NotEqual(t, "OK", worst.Word())
			whole := conditionOf(states(status, now))
			require.Equal(t, c.class, whole.Class)
			require.Contains(t, whole.Line, strings.ToLower(c.part))
		})
	}
}

// TestADifferenceIsSaidOnce checks that a difference between instances has one state, and that a segment without
// limits of its own is no more than a note.
func TestADifferenceIsSaidOnce(t *testing.T) {
	t.Parallel()
	status := fine()
	status.Store.Fleet.Differing = map[string]int{"limits": 2}
	status.Store.Warnings = []string{"2 of 2 other instances differ from this one in limits"}
	status.Config.Problems = []string{"segment active has no limits of its own: limits.default applies"}
	at := conditionOf(states(status, now))
	require.Len(t, at.Look, 1)
	require.Equal(t, "Instances", at.Look[0].Part)
	require.Equal(t, 1, at.Notes())
}

// TestACreatedStoreIsANote checks that the creation of a store at the first start is only a note, while other notes
// of a start need attention.
func TestACreatedStoreIsANote(t *testing.T) {
	t.Parallel()
	status := fine()
	status.Store.Warnings = []string{"the store was created empty at this start: earlier sends are unknown"}
	first := states(status, now)[0]
	require.Equal(t, []string{"Store", "note", "Note"}, []string{first.Part, first.Class, first.Word()})
	status.Store.Warnings = append(status.Store.Warnings, "no append-only file")
	list := states(status, now)
	require.Equal(t, []string{"warn", "note"}, []string{list[0].Class, list[1].Class})
	require.Equal(t, "no append-only file.", list[0].What)
	at := conditionOf(list)
	require.Equal(t, "warn", at.Class)
	require.Equal(t, "It works, but look at this: store.", at.Line)
	require.Len(t, at.Look, 1)
	require.Equal(t, 1, at.Notes())
}

func TestLimitsAreSentences(t *testing.T) {
	t.Parallel()
	for want, limit := range map[string]api.Limit{
		"at most 2 sends in any 24 hours, all channels": {Max: 2, Window: "24h"},
		"at most 1 send in any hour, on push": {Max: 1, Window: "1h",
			Channels: []string{"push"}},
		"at most 3 sends in any 7 days, on email and sms": {Max: 3, Window: "168h0m0s",
			Channels: []string{"email", "sms"}},
		"at most 1 send in a calendar month (in the user's time zone), all channels": {Max: 1, Window: "month",
			Calendar: "month", Timezone: "user"},
		"at most 5 sends in any 1 hour and 30 minutes, all channels": {Max: 5, Window: "90m"},
		"never, on sms": {Max: 0, Window: "24h", Channels: []string{"sms"}},
	} {
		require.Equal(t, want, sentence(limit))
	}
}

func TestVersionsSayWhatDiffers(t *testing.T) {
	t.Parallel()
	before := &api.Policy{Version: "a", Default: []api.Limit{{Name: "daily", Max: 1, Window: "24h"}},
		Suppress: []api.Suppression{{Set: "opted-out"}}}
	after := &api.Policy{Version: "b", Default: []api.Limit{{Name: "daily", Max: 2, Window: "24h"}},
		Suppress: []api.Suppression{{Set: "opted-out"}}, Segments: map[string][]api.Limit{"staff": {}}}
	list := versions([]Version{{Policy: after, Since: now}, {Policy: before, Since: now.Add(-time.Hour)}})
	require.Equal(t, []string{"staff: no limit.", "default, daily: at most 2 sends in any 24 hours, all " +
		"channels."}, list[0].Added)
	require.Equal(t, []string{"default, daily: at most 1 send in any 24 hours, all channels."}, list[0].Removed)
	require.True(t, list[1].First)
}
