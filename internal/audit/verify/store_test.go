package verify_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
)

// answers is what a store says of the sends that it lacks.
type answers struct {
	mu       sync.Mutex
	at       capping.Instant
	lacks    map[string]bool         // message and user
	silent   map[capping.UserID]bool // users whom it does not answer for
	released map[string]int64
	bounds   map[string]bool // messages whose released is a lower bound
	asked    int
	settled  func() // what happens while the comparison waits
	images   bool   // the audit has images
}

func sendName(message string, user capping.UserID) string { return fmt.Sprint(message, " ", user) }

func (a *answers) ask(_ context.Context, q *verify.Question) (*verify.Answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := &verify.Answer{At: a.at}
	for _, image := range q.Users {
		a.asked++
		switch user := a.user(image); {
		case a.silent[user]:
			answer.Unavailable = append(answer.Unavailable, image)
		case a.lacks[sendName(q.Message.ID, user)]:
			answer.Missing = append(answer.Missing, verify.MissingUsers{Place: "here", Users: []capping.UserID{image}})
		}
	}
	return answer, nil
}

// user is the dense id of a user in the audit.
func (a *answers) user(image capping.UserID) capping.UserID {
	if a.images {
		return capping.UserID(audittest.User(image))
	}
	return image
}

func (a *answers) compare(t *testing.T, at objects.Source) (*verify.Report, []string) {
	t.Helper()
	var missing []string
	from := archive.New(at, config.ParsePolicy)
	if a.images {
		from.Of(audittest.IDs())
	}
	report, err := verify.Check(t.Context(), from,
		verify.Config{Segments: worlds, Name: named, Store: &verify.Store{
			Ask: a.ask, Now: a.at,
			Settle: func(context.Context) error {
				if a.settled != nil {
					a.settled()
				}
				return nil
			},
			Released: func(_ context.Context, m capping.Message) (int64, int, bool, error) {
				n, counted := a.released[m.ID]
				if !counted {
					return 0, 0, false, nil
				}
				return n, 1, !a.bounds[m.ID], nil
			},
			Missing: func(m *verify.MissingSend) error {
				missing = append(missing, sendName(m.Message.ID, a.user(m.User)))
				return nil
			},
		}})
	require.NoError(t, err)
	return report, missing
}

// compared is a location with a send of two users, of whom the store lacks one.
func compared(t *testing.T) (at *objects.Directory, w *audittest.Writer, store *answers) {
	at = objects.NewDirectory(t.TempDir())
	audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {weekly: 9}\n")
	w = audittest.NewWriter(at, 1)
	store = &answers{at: noon + day, lacks: map[string]bool{sendName("m", 42): true},
		released: map[string]int64{"m": 0}}
	return at, w, store
}

func TestTheStoreLacksASend(t *testing.T) {
	t.Parallel()
	at, w, store := compared(t)
	w.Roll(t, audittest.Frames(sent(noon, "m", 1, 42, 43), sent(noon+1, "n", 1, 42))...)
	report, missing := store.compare(t, at)
	require.Equal(t, []string{"m 42"}, missing)
	require.Equal(t, map[string]int{verify.NotInStore: 1}, report.Found)
	require.EqualValues(t, 3, report.Store.Asked)
	require.Equal(t, "here", report.Store.Places[0].Place)
	require.Equal(t, noon.Time(), report.Store.Places[0].First)

	store.silent = map[capping.UserID]bool{42: true}
	report, missing = store.compare(t, at)
	require.Empty(t, missing)
	require.True(t, report.Healthy())
	require.EqualValues(t, 2, report.Store.Unanswered)
}

// A killed instance has lost the record of a send, and a repeated call shows the send. If the store lacks the send, it
// is written with the missing ones, and is no finding.
func TestASendThatOnlyARepeatedCallShows(t *testing.T) {
	t.Parallel()
	repeated := func(at capping.Instant, message string, channel capping.Channel, users ...uint32) *audit.Record {
		return changed(sent(at, message, channel, users...), func(r *audit.Record) {
			r.Groups[0].Outcome = audit.Replayed
		})
	}
	for name, c := range map[string]struct {
		dies       bool
		records    []*audit.Record
		unrecorded int64
		missing    []string
	}{
		"lost": {true, []*audit.Record{repeated(noon+hour, "m", 1, 42, 43)}, 1, []string{"m 42"}},
		"twice": {true, []*audit.Record{repeated(noon+hour, "m", 1, 42), repeated(noon+2*hour, "m", 1, 42)}, 1,
			[]string{"m 42"}},
		"no crash": {false, []*audit.Record{repeated(noon+hour, "m", 1, 42)}, 0, nil},
		"released": {true, []*audit.Record{repeated(noon+hour, "m", 1, 42),
			gaveBack(noon+2*hour, audit.Released, "m", 42)}, 0, nil},
		"sent before": {true, []*audit.Record{sent(noon-8*day, "m", 1, 42), repeated(noon+hour, "m", 1, 42)}, 0, nil},
		"other channel": {true, []*audit.Record{sent(noon+hour, "m", 2, 42), repeated(noon+hour+1, "m", 1, 42)}, 1,
			[]string{"m 42", "m 42"}},
		"recorded": {true, []*audit.Record{sent(noon, "m", 1, 42), repeated(noon+hour, "m", 1, 42)}, 0,
			[]string{"m 42"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, w, store := compared(t)
			store.released["n"] = 0
			if frames := audittest.Frames(sent(noon, "n", 1, 7)); c.dies {
				w.Die(t, noon+1, frames...)
			} else {
				w.Roll(t, frames...)
			}
			w.Roll(t, audittest.Frames(c.records...)...)
			report, missing := store.compare(t, at)
			require.Equal(t, c.unrecorded, report.Store.Unrecorded)
			require.Equal(t, c.missing, missing)
			require.EqualValues(t, len(c.missing)-int(c.unrecorded), report.Store.Missing)
			require.Zero(t, report.Found[verify.OverSend])
		})
	}
}

// A release and an erasure that reach the audit while the comparison waits explain what is missing.
func TestWhatIsGivenBackMeanwhileIsNotMissing(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(t *testing.T, at *objects.Directory, w *audittest.Writer){
		"release": func(t *testing.T, at *objects.Directory, w *audittest.Writer) {
			w.Roll(t, audittest.Frames(gaveBack(noon+hour, audit.Released, "m", 42))...)
		},
		"erasure": func(t *testing.T, at *objects.Directory, w *audittest.Writer) {
			audittest.Erase(t, at, 1, noon+hour, 42)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, w, store := compared(t)
			w.Roll(t, audittest.Frames(sent(noon, "m", 1, 42, 43))...)
			store.settled = func() { happens(t, at, w) }
			report, missing := store.compare(t, at)
			require.Empty(t, missing)
			require.True(t, report.Healthy())
			require.EqualValues(t, 1, report.Store.Changed)
			asked := store.asked
			_, _ = store.compare(t, at)
			require.Equal(t, asked+1, store.asked, "it is not asked for any more")
		})
	}
}

// A send is asked for as long as every window that was in force since sees it.
func TestOldSendsAreNotAskedFor(t *testing.T) {
	t.Parallel()
	at, w, store := compared(t)
	audittest.Policy(t, at, "c2", "version: c2\n"+head+"  default: {daily: 9}\n")
	w.Roll(t, audittest.Frames(sent(noon, "m", 1, 42))...)
	store.at = noon + 7*day - 30*second
	report, _ := store.compare(t, at)
	require.Zero(t, report.Store.Asked, "half a minute before the window ends")
	store.at = noon + 7*day - 70*second
	report, _ = store.compare(t, at)
	require.EqualValues(t, 1, report.Store.Missing)
	w.Roll(t, audittest.Frames(changed(sent(noon+hour, "later", 1, 44), under("c2")))...)
	report, _ = store.compare(t, at)
	require.Zero(t, report.Store.Asked, "a shorter window was in force since")
}

// A killed instance may have lost the record of a release. The store's own count of released sends tells, and where
// there is none, a few sends are in doubt; many are not.
func TestALostReleaseIsNoLostSend(t *testing.T) {
	t.Parallel()
	users := make([]uint32, 5000)
	for i := range users {
		users[i] = uint32(i)
	}
	for name, c := range map[string]struct {
		sent     []uint32
		lacks    int // so many of them
		released int64
		counted  bool
		bound    bool
		doubtful int64
		missing  int64
	}{
		"the count explains it":            {users[:300], 5, 5, true, false, 5, 0},
		"the count explains fewer":         {users[:300], 5, 4, true, false, 0, 5},
		"the count is a lower bound":       {users[:300], 5, 4, true, true, 5, 0},
		"nothing was released":             {users[:300], 5, 0, true, false, 0, 5},
		"the store lost the count as well": {users[:300], 5, 0, false, false, 0, 5},
		"small calls are not counted":      {users[:9], 5, 0, false, false, 5, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, w, store := compared(t)
			store.lacks, store.released = map[string]bool{}, map[string]int64{}
			for _, user := range c.sent[:c.lacks] {
				store.lacks[sendName("m", capping.UserID(user))] = true
			}
			if c.counted {
				store.released["m"], store.bounds = c.released, map[string]bool{"m": c.bound}
			}
			w.Die(t, noon+hour, audittest.Frames(sent(noon, "m", 1, c.sent...))...)
			report, missing := store.compare(t, at)
			require.Equal(t, c.doubtful, report.Store.Doubtful)
			require.Equal(t, c.missing, report.Store.Missing)
			require.Len(t, missing, int(c.missing))
		})
	}
	at, w, store := compared(t)
	store.lacks, store.released = map[string]bool{}, map[string]int64{}
	var records []*audit.Record
	for i, user := range users {
		message := fmt.Sprint("single-", i%30) // few: the whole audit is read for each
		records = append(records, sent(noon+capping.Instant(i), message, 1, user))
		store.lacks[sendName(message, capping.UserID(user))] = true
	}
	w.Die(t, noon+hour, audittest.Frames(records...)...)
	report, _ := store.compare(t, at)
	require.EqualValues(t, len(users), report.Store.Missing, "no crash loses so many releases")
}
