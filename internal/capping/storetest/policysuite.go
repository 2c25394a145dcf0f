package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
	"capper/internal/share"
	"capper/internal/testkit"
)

const policyDay = 24 * time.Hour

// RunPolicies makes random calls to a Capper on the store under test, and compares each decision with the naive model
// of policies. The function in the argument "open" opens the store under test, and closes it through t.Cleanup. The
// store must read the times of sends from the function "clock". The clock of the suite starts at the present time and
// never moves back.
func RunPolicies(t *testing.T, open func(t *testing.T, clock func() time.Time) capping.Store) {
	t.Run("policies decide as the naive model does", func(t *testing.T) {
		t.Parallel()
		clock := testkit.NewClock()
		store := open(t, clock.Now)
		next := rand.Uint32N(1 << 31)
		rapid.Check(t, func(rt *rapid.T) {
			next += users // before the calls: rapid repeats a history that failed, and needs new users for it
			newHistory(rt, store, clock, capping.UserID(next)).run()
		})
	})
}

// The constant "users" is the number of users in a random history.
const users = 10

// policyHistory makes the same random calls to a Capper and to the naive model, and compares the results.
type policyHistory struct {
	*rapid.T
	capper   *capping.Capper
	clock    *testkit.Clock
	model    *policyModel
	users    []capping.UserID
	messages []capping.Message
}

func newHistory(t *rapid.T, store capping.Store, clock *testkit.Clock, first capping.UserID) *policyHistory {
	h := &policyHistory{T: t, clock: clock}
	for i := range capping.UserID(users) {
		h.users = append(h.users, first+i)
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "messages") {
		h.messages = append(h.messages, capping.Message{ID: fmt.Sprint("m-", first, "-", i)})
	}
	h.messages = append(h.messages, capping.Message{Namespace: "growth", ID: h.messages[0].ID})
	h.model = newModel(drawRules(t), drawWorld(t, "g0", h.users))
	policy := h.model.rules.policy()
	h.capper = capping.New(store, func() capping.Segments { return segments{world: h.model.world} }, policy, clock.Now)
	h.model.widen = h.capper.Widening()
	h.model.retention = policy.Retention(h.model.widen)
	return h
}

func (h *policyHistory) run() {
	for step := range rapid.IntRange(1, 20).Draw(h.T, "steps") {
		pause := rapid.SampledFrom([]time.Duration{
			0, 0, time.Millisecond, time.Second, time.Minute, time.Hour, 5 * time.Hour, 13 * time.Hour,
			policyDay - time.Millisecond, policyDay, 3*policyDay + 7*time.Hour,
		}).Draw(h.T, "pause")
		if capping.InstantOf(h.clock.Now()) > capping.Never/2 {
			pause %= time.Second // keeps a long run within the range of instants in a log
		}
		h.clock.Advance(pause)
		switch rapid.IntRange(0, 9).Draw(h.T, "call") {
		case 0:
			h.release()
		case 1:
			h.model.world = drawWorld(h.T, fmt.Sprint("g", step+1), h.users)
		case 2:
			h.explain(rapid.SampledFrom(h.users).Draw(h.T, "explained"))
		case 3:
			h.filter(&capping.Send{Enforce: true, At: h.forecast()})
		case 4:
			h.filter(&capping.Send{Enforce: false, Record: true})
		case 5:
			h.filter(&capping.Send{Enforce: true})
		default:
			h.filter(&capping.Send{Enforce: true, Record: true})
		}
	}
	for _, user := range h.users[:3] {
		h.explain(user)
	}
}

// The method "forecast" returns a random time up to a year in the future. Half of the returned times are shortly before
// a clock change in some time zone.
func (h *policyHistory) forecast() capping.Instant {
	at := h.clock.Now().Add(time.Duration(rapid.Int64Range(1, 365*policyDay.Milliseconds()).Draw(h.T,
		"ahead")) * time.Millisecond)
	_, change := at.In(load(rapid.SampledFrom(zoneNames()).Draw(h.T, "near"))).ZoneBounds()
	if !change.IsZero() && rapid.Bool().Draw(h.T, "near a change") {
		at = change.Add(time.Duration(rapid.Int64Range(0, 30*time.Hour.Milliseconds()).Draw(h.T,
			"before")) * -time.Millisecond)
	}
	return max(capping.InstantOf(at), capping.InstantOf(h.clock.Now()))
}

func (h *policyHistory) release() {
	message := rapid.SampledFrom(h.messages).Draw(h.T, "released")
	channel := rapid.SampledFrom([]capping.Channel{0, 1, 2}).Draw(h.T, "released channel")
	released, err := h.capper.Release(context.Background(), message, channel, h.users)
	require.NoError(h, err)
	for i, got := range released {
		switch remembered, known := h.model.release(h.users[i], message, channel, h.clock.Now()); {
		case remembered:
			require.Equal(h, capping.ReleaseDone, got)
		case !known:
			require.Equal(h, capping.ReleaseAbsent, got)
		} // the store may or may not have removed a send older than the retention
	}
}

// The method "filter" filters the send for random users, and compares the Capper's decisions with the decisions of the
// naive model.
func (h *policyHistory) filter(send *capping.Send) {
	send.Users = rapid.Permutation(h.users).Draw(h.T, "users")[:rapid.IntRange(1, len(h.users)).Draw(h.T, "n")]
	send.Message = rapid.SampledFrom(h.messages).Draw(h.T, "message")
	if !send.Record && rapid.Bool().Draw(h.T, "no message") {
		send.Message = capping.Message{}
	}
	send.Channel = rapid.SampledFrom([]capping.Channel{0, 1, 2, 3}).Draw(h.T, "channel")
	c := call{message: send.Message, channel: send.Channel, enforce: send.Enforce, at: h.clock.Now()}
	if send.At != 0 {
		c.at = send.At.Time()
	}
	d := h.capper.Filter(context.Background(), send)
	require.NoError(h, d.Err)
	require.Equal(h, h.model.world.generation, d.Generation)
	for i, user := range send.Users {
		want := h.model.ask(user, c)
		h.compare(want, d, i, c)
		if send.Record && want.outcome == capping.Allowed {
			h.model.record(user, sendOf(c))
		}
	}
}

func sendOf(c call) policySend { return policySend{c.at, c.channel, c.message} }

func (h *policyHistory) compare(want policyAnswer, d *capping.Decisions, i int, c call) {
	v := d.Verdicts[i]
	require.Equal(h, want.outcome, v.Outcome, "user %d at %v: %+v", d.Users[i], c.at, want)
	require.Equal(h, h.model.world.segmentOf(d.Users[i]), d.Segment(i))
	got := policyAnswer{outcome: v.Outcome, set: d.Set(i), shadow: shadowOf(d, i)}
	if zone := d.Zone(i); zone != nil {
		got.zone = zone.String()
	}
	if v.Outcome == capping.Denied {
		got.by = [...]string{capping.BySuppression: "suppressed", capping.ByHoldout: "holdout",
			capping.ByQuiet: "quiet", capping.ByLimit: ""}[v.By]
		if limit := d.Limit(i); limit != nil {
			got.by = limit.Name
		}
		if v.FreesAt != capping.Never {
			got.until = v.FreesAt.Time()
		}
	}
	if want.until.IsZero() && got.until.After(c.at.Add(searched)) && h.model.opensAt(d.Users[i], c.channel, got.until) {
		got.until = want.until // another season, later than the model searches
	}
	want.until, got.until = want.until.UTC(), got.until.UTC()
	require.Equal(h, want, got, "user %d at %v", d.Users[i], c.at)
}

func shadowOf(d *capping.Decisions, i int) (names []string) {
	for k, limit := range d.ShadowLimits(i) {
		if d.Verdicts[i].Shadow>>k&1 == 1 {
			names = append(names, limit.Name)
		}
	}
	return names
}

// The method "explain" compares a Capper's explanation of one user (Capper.Explain) with the state of the naive model.
func (h *policyHistory) explain(user capping.UserID) {
	e, err := h.capper.Explain(context.Background(), user)
	require.NoError(h, err)
	now := h.clock.Now()
	require.Equal(h, h.model.world.segmentOf(user), e.Segment)
	require.Equal(h, h.model.zoneBy("", user), e.Zone.String())
	require.Empty(h, e.Missing)
	entries := []capping.Entry{}
	for _, s := range h.model.remembered(user, now) {
		entries = append(entries, capping.Entry{At: capping.InstantOf(s.at), Channel: s.channel,
			Token: s.message.Token()})
	}
	require.Equal(h, entries, e.Log.Entries())
	for i, l := range h.model.rules.of(e.Segment) {
		used := h.model.counts(l, user, now)
		require.Equal(h, used, e.Standings[i].Used, "%+v", l)
		require.Equal(h, used >= l.most, e.Standings[i].FreesAt > 0)
		if used >= l.most && l.most > 0 {
			require.Equal(h, h.model.frees(l, user, now).UTC(), e.Standings[i].FreesAt.Time())
		}
	}
	h.explainWithheld(e, user, now)
}

func (h *policyHistory) explainWithheld(e *capping.Explanation, user capping.UserID, now time.Time) {
	var suppressed, told []string
	for _, s := range h.model.rules.suppress {
		if h.model.world.in(s.set, user) {
			suppressed = append(suppressed, s.set)
		}
	}
	for _, s := range e.Suppressed {
		told = append(told, s.Set)
	}
	require.Equal(h, suppressed, told)
	require.Equal(h, h.model.rules.held != nil && share.Has(&h.model.rules.held.share, user), e.HeldOut)
	standings := e.Quiet
	for i := range h.model.rules.quiet {
		q := &h.model.rules.quiet[i]
		if !h.model.concerns(q, user) {
			continue
		}
		require.NotEmpty(h, standings)
		require.Same(h, &e.Policy.Quiet[i], standings[0].Quiet)
		require.Equal(h, h.model.zoneBy(q.zone, user), standings[0].Location.String())
		require.Equal(h, h.model.on(q, user, now), standings[0].On)
		if standings[0].On {
			end := now
			for h.model.on(q, user, end) {
				end = end.Truncate(time.Minute).Add(time.Minute)
			}
			require.Equal(h, end.UTC(), standings[0].Until.Time())
		}
		standings = standings[1:]
	}
	require.Empty(h, standings)
}
