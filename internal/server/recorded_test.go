package server_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit"
	auditjournal "capper/internal/audit/journal"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/testkit"
)

// fates maps the users of a call to their outcomes in a word.
type fates map[capping.UserID]string

func (f fates) add(fate string, users ...uint32) {
	for _, user := range users {
		f[capping.UserID(user)] = fate
	}
}

// fatesOf returns the outcomes in an answer. Answers with bitmaps do not name the suppressing set.
func fatesOf(t testing.TB, body []byte, bits bool) fates {
	f := fates{}
	if bits {
		var got filtered
		require.NoError(t, json.Unmarshal(body, &got))
		f.add("allowed", bitmapOf(t, got.AllowedBitmap)...)
		f.add("replayed", bitmapOf(t, got.ReplayedBitmap)...)
		for limit, users := range got.DeniedBitmaps {
			f.add("denied "+limit, bitmapOf(t, users)...)
		}
		f.add("unavailable", bitmapOf(t, got.UnavailableBitmap)...)
		return f
	}
	var got api.FilterIDs
	require.NoError(t, json.Unmarshal(body, &got))
	f.add("allowed", got.Allowed...)
	f.add("replayed", got.Replayed...)
	for _, d := range got.Denied {
		f.add("denied "+d.Limit+d.Set, d.UserID)
	}
	f.add("unavailable", got.Unavailable...)
	return f
}

// recordedFates returns the outcomes in a record.
func recordedFates(t testing.TB, r *audit.Record, bits bool) fates {
	f := fates{}
	for _, g := range r.Groups {
		fate := g.Outcome.String()
		if g.Outcome == audit.Denied {
			fate += " " + g.Limit
		}
		if !bits {
			fate += g.Set
		}
		for user := range g.Users.All() {
			require.Empty(t, f[capping.UserID(user)], "groups are disjoint")
			f[capping.UserID(user)] = fate
		}
	}
	return f
}

// recordsIn returns the records in the journal's open file.
func recordsIn(t testing.TB, j *auditjournal.Journal) (found []*audit.Record) {
	t.Helper()
	require.NoError(t, j.Flush(t.Context()))
	file, err := os.Open(filepath.Join(j.Room(), "1.audit"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	defer file.Close()
	r, err := audit.NewReader(file)
	require.NoError(t, err)
	for {
		frame, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		require.NotNil(t, frame.Record)
		found = append(found, frame.Record)
	}
}

// TestRecordsAreWhatWasAnswered checks that every outcome in a record equals the answer: for lists, bitmaps and
// expressions, with suppression, holdout, quiet hours, limits, shadow limits, exempt sends, retries and releases.
func TestRecordsAreWhatWasAnswered(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(*testkit.Clock) capping.Store{
		"embedded": func(c *testkit.Clock) capping.Store { return openStore(t, c.Now) },
		"redis":    func(c *testkit.Clock) capping.Store { return openRedis(t, c.Now, testkit.Namespace()) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			clock := testkit.NewClockAt(startOfTest)
			var j *auditjournal.Journal
			s, g := newSetServiceOver(t, open(clock), clock, withAudit(t, true),
				func(cfg *server.Config) { j = cfg.Journal })
			rng := rand.New(rand.NewPCG(7, 8))
			seen := map[string]bool{}
			recorded := 0
			for n := range 120 {
				began := clock.Now()
				request, bits := drawCall(rng, n)
				answer := s.post("/v1/filter", request)
				require.Equal(t, http.StatusOK, answer.status, "%s", answer.body)
				clock.Advance(time.Duration(rng.IntN(4*3600*1000)) * time.Millisecond)
				found := recordsIn(t, j)
				if request["record"] == false {
					require.Len(t, found, recorded, "previews are not recorded")
					continue
				}
				recorded++
				require.Len(t, found, recorded)
				r := found[recorded-1]
				want := fatesOf(t, answer.body, bits)
				require.Equal(t, want, recordedFates(t, r, bits), "call %d: %v", n, request)
				requireSummary(t, answer.body, r)
				for _, fate := range want {
					seen[fate] = true
				}
				require.Equal(t, []any{request["message_id"], capping.InstantOf(began), g.current().Generation(),
					"policy-2", request["enforce"] == false, uint64(recorded)},
					[]any{r.Message.ID, r.At, r.Generation, r.Config, r.Exempt, r.Sequence})
				if n%9 == 0 {
					users := keysSorted(want)
					released := s.post("/v1/release", map[string]any{"message_id": request["message_id"],
						"user_ids": users})
					require.Equal(t, http.StatusOK, released.status)
					recorded++
					found = recordsIn(t, j)
					requireReleased(t, released.body, found[recorded-1], len(users))
				}
			}
			for _, fate := range []string{"allowed", "replayed", "denied daily", "denied suppressedopted-out",
				"denied quiet", "denied holdout"} {
				require.True(t, seen[fate], "%s: %v", fate, seen)
			}
		})
	}
}

// drawCall draws a random filter call. The result bits reports whether its answer has bitmaps.
func drawCall(rng *rand.Rand, n int) (request map[string]any, bits bool) {
	request = map[string]any{"message_id": fmt.Sprint("m-", n-rng.IntN(2)*rng.IntN(min(n+1, 3)))}
	if channel := []string{"", "push", "email", "sms"}[rng.IntN(4)]; channel != "" {
		request["channel"] = channel
	}
	var users []uint32
	for range 1 + rng.IntN(60) {
		users = append(users, uint32(rng.IntN(150)))
	}
	users = append(users, 1000)
	switch rng.IntN(3) {
	case 0:
		request["user_ids"] = users
	case 1:
		request["users_bitmap"], bits = base64.StdEncoding.EncodeToString(bitmap.Of(users...).Bytes()), true
	default:
		request["audience"], bits = "vip | country/sg", true
	}
	switch rng.IntN(8) {
	case 0:
		request["enforce"] = false
	case 1:
		request["record"] = false
	}
	return request, bits
}

func keysSorted(f fates) (users []uint32) {
	for user := range f {
		users = append(users, capping.Dense(user))
	}
	return users
}

// requireSummary compares the counts of a record with those of the answer.
func requireSummary(t testing.TB, body []byte, r *audit.Record) {
	var got struct{ Summary api.Summary }
	require.NoError(t, json.Unmarshal(body, &got))
	segments := map[string]api.SegmentSummary{}
	for _, s := range r.Segments {
		name := s.Name
		if name == "" {
			name = api.NoSegment
		}
		segments[name] = api.SegmentSummary{Requested: s.Requested, Allowed: s.Allowed}
		require.Equal(t, s.Requested, s.Allowed+s.Denied+s.Unavailable)
	}
	require.Equal(t, got.Summary.Segments, segments)
	var shadow map[string]int
	for _, c := range r.Shadow {
		if shadow == nil {
			shadow = map[string]int{}
		}
		shadow[c.Name] = c.Users
	}
	require.Equal(t, got.Summary.ShadowDenied, shadow)
}

func requireReleased(t testing.TB, body []byte, r *audit.Record, users int) {
	var got api.ReleaseIDs
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, audit.Release, r.Kind)
	want := fates{}
	want.add("released", got.Released...)
	recorded := recordedFates(t, r, false)
	require.Len(t, recorded, users)
	for user, fate := range recorded {
		if fate == "released" {
			require.Equal(t, "released", want[user])
			delete(want, user)
		}
	}
	require.Empty(t, want)
}

// TestABlastTakesABitForEachUser checks the size of the record of a million neighbouring users. It is tiny if all are
// allowed, a bit for each user with gaps between them, and a bit for each outcome of each user if outcomes are mixed.
func TestABlastTakesABitForEachUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ skipped, denied, most int64 }{
		"all allowed": {0, 0, 1_000}, "all allowed, every 16th is another": {15, 0, 140_000},
		"every third denied": {0, 3, 270_000},
	} {
		d := &capping.Decisions{Users: make([]capping.UserID, 1_000_000), Verdicts: make([]capping.Verdict, 1_000_000),
			Codes: make([]uint8, 1_000_000), Policy: &capping.Policy{Version: "c1"}}
		for i := range d.Users {
			if d.Users[i] = capping.UserID(uint32(i)); c.skipped > 0 {
				d.Users[i] += capping.UserID(int64(i) / c.skipped)
			}
			if d.Verdicts[i].Outcome = capping.Allowed; c.denied > 0 && int64(i)%c.denied == 0 {
				d.Verdicts[i] = capping.Verdict{Outcome: capping.Denied, By: capping.ByQuiet}
			}
		}
		j, err := auditjournal.Open(t.Context(), auditjournal.Config{To: t.TempDir()})
		require.NoError(t, err)
		j.Filter(&audit.Record{Message: capping.Message{ID: "blast"}}, d)
		require.NoError(t, j.Flush(t.Context()))
		stat, err := os.Stat(filepath.Join(j.Room(), "1.audit"))
		require.NoError(t, err)
		t.Logf("%s: %d bytes", name, stat.Size())
		require.LessOrEqual(t, stat.Size(), c.most, name)
		require.NoError(t, j.Close(t.Context()))
	}
}

// TestErasureCoversTheAudit checks that an erasure is in the audit's list before the answer. If the list cannot be
// written, the answer describes the completed part.
func TestErasureCoversTheAudit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var j *auditjournal.Journal
	s := newService(t, func(cfg *server.Config) {
		var err error
		j, err = auditjournal.Open(t.Context(), auditjournal.Config{To: filepath.Join(dir, "audit")})
		require.NoError(t, err)
		cfg.Journal = j
	})
	defer func() { require.NoError(t, j.Close(t.Context())) }()
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/42", "").status)
	body, err := os.ReadFile(filepath.Join(dir, "audit", filepath.FromSlash(audit.ErasedKey(j.Instance(), 1))))
	require.NoError(t, err)
	var erasure audit.Erasure
	require.NoError(t, audit.Unseal(body, &erasure))
	require.Equal(t, []capping.UserID{42}, erasure.Users)

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "audit")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "audit"), nil, 0o644))
	refused := s.call(http.MethodDelete, "/v1/users/43", "")
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Contains(t, string(refused.body), "the log of the user is erased")
	require.NoError(t, os.Remove(filepath.Join(dir, "audit")))
	require.Equal(t, http.StatusNoContent, s.call(http.MethodDelete, "/v1/users/43", "").status)
}
