package whatif

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/audittest"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

const benchUsers = 10_000_000

// snapshot is a real generation as the domain asks it.
type snapshot struct {
	*segments.Snapshot
}

func (s snapshot) Set(name string) (capping.Set, bool) {
	set := s.Snapshot.Set(name)
	return capping.SetByNumber{Members: set}, set != nil
}

// imageSnapshot is a generation of images; the number of an image is the dense id from which it came.
type imageSnapshot struct {
	snapshot
}

func (imageSnapshot) Numbers(users []capping.UserID, numbers []uint32) {
	for i, user := range users {
		numbers[i] = audittest.User(user)
	}
}

func ofImages(records []*audit.Record) (list []*audit.Record) {
	for _, r := range records {
		list = append(list, audittest.OfImages(r))
	}
	return list
}

// benchSegments puts four fifths of the users into four segments at random.
func benchSegments(b *testing.B) snapshot {
	r := rand.New(rand.NewPCG(1, 1))
	ids := make([][]uint32, 5)
	for user := range uint32(benchUsers) {
		at := r.IntN(5)
		ids[at] = append(ids[at], user)
	}
	var bitmaps []*bitmap.Bitmap
	for _, list := range ids[1:] {
		bitmaps = append(bitmaps, bitmap.OfSorted(list))
	}
	return snapshot{Snapshot: segmentstest.Generation(b, []string{"new", "active", "lapsed", "vip"},
		bitmaps...).Snapshot()}
}

// benchPolicy has limits of its own for each segment, so many sends a week.
func benchPolicy(version string, weekly int) *capping.Policy {
	limits := func(more int) []capping.Limit {
		return []capping.Limit{{Name: "daily", Max: 1, Window: day}, {Name: "weekly", Max: weekly + more,
			Window: 7 * day}}
	}
	return &capping.Policy{Version: version, Channels: map[string]capping.Channel{"push": 1}, Default: limits(0),
		Segments: map[string][]capping.Limit{
			"new": limits(0), "active": limits(1), "lapsed": limits(0), "vip": limits(2),
		}}
}

// benchRecords is the record of calls for the users, one every pause, under three sends a week, or as
// many as the segment may get.
func benchRecords(b *testing.B, in snapshot, pause time.Duration, calls int,
	users func(call int) []uint32) []*audit.Record {
	h := newHistories()
	decides := &logs{histories: h}
	now := capping.InstantOf(time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC))
	capper := capping.New(decides, func() capping.Segments { return in }, benchPolicy("p", 3),
		func() time.Time { return now.Time() })
	var records []*audit.Record
	for i := range calls {
		now += capping.Instant(pause.Milliseconds())
		h.horizon = now - capping.Instant((7 * day).Milliseconds())
		send := &capping.Send{Message: capping.Message{ID: fmt.Sprint("m-", i)}, Channel: 1,
			Users:   capping.AppendUsers(nil, users(i)),
			Enforce: true, At: now}
		d := capper.Filter(context.Background(), send)
		call := h.call(capping.Entry{At: now, Channel: 1, Token: send.Message.Token()})
		for k, user := range d.Users {
			if d.Verdicts[k].Outcome == capping.Allowed {
				h.add(h.page(int(user>>16)), uint16(user), call, true, true)
			}
		}
		records = append(records, recordOf(send, now, d))
		require.NoError(b, d.Err)
	}
	return records
}

// random is n distinct users, ascending.
func random(r *rand.Rand, n int) []uint32 {
	set := bitmap.SetOf()
	for range n {
		set.Add(r.Uint32N(benchUsers))
	}
	return set.Bitmap().IDs()
}

// Run with -cpu 1: decisions a second on one core, and bytes of memory for each user.
func BenchmarkReplay(b *testing.B) {
	in := benchSegments(b)
	demands := []struct {
		name  string
		pause time.Duration
		calls int
		users func(r *rand.Rand) func(int) []uint32
	}{
		{"blasts of 1M/random", 12 * time.Hour, 10, func(r *rand.Rand) func(int) []uint32 {
			return func(int) []uint32 { return random(r, 1_000_000) }
		}},
		{"blasts of 1M/neighbours", 12 * time.Hour, 10, func(r *rand.Rand) func(int) []uint32 {
			return func(int) []uint32 {
				from := r.Uint32N(4) * 1_000_000 / 2
				return bitmap.Range(from, from+999_999).IDs()
			}
		}},
		{"calls of 10k random", 7 * time.Minute, 1000, func(r *rand.Rand) func(int) []uint32 {
			return func(int) []uint32 { return random(r, 10_000) }
		}},
		{"single users", time.Second, 100_000, func(r *rand.Rand) func(int) []uint32 {
			return func(int) []uint32 { return random(r, 1) }
		}},
	}
	for _, demand := range demands {
		records := benchRecords(b, in, demand.pause, demand.calls, demand.users(rand.New(rand.NewPCG(2, 2))))
		for _, other := range []struct {
			name   string
			policy *capping.Policy
		}{{"judged anew", benchPolicy("q", 2)}, {"same rules", benchPolicy("q", 3)},
			{"one segment changed", oneSegment()}} {
			b.Run(demand.name+"/"+other.name, func(b *testing.B) { benchReplay(b, records, in, other.policy) })
			b.Run(demand.name+"/"+other.name+"/images", func(b *testing.B) {
				benchReplay(b, ofImages(records), imageSnapshot{in}, other.policy)
			})
		}
	}
}

// cpuTime is what the process has taken of the cores: what a busy machine does besides is not in it.
func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// oneSegment changes the limits of every fifth user.
func oneSegment() *capping.Policy {
	p := benchPolicy("q", 3)
	p.Segments["vip"] = p.Segments["new"]
	return p
}

func benchReplay(b *testing.B, records []*audit.Record, in capping.Segments, policy *capping.Policy) {
	b.ReportAllocs()
	began := cpuTime(b)
	var got *Result
	for b.Loop() {
		var err error
		got, err = Run(context.Background(), all(records), Config{
			Policy:      policy,
			Policies:    func(string) (*capping.Policy, error) { return benchPolicy("p", 3), nil },
			Generations: func(string) (capping.Segments, error) { return in, nil },
		})
		require.NoError(b, err)
	}
	b.ReportMetric(float64(got.Asked)*float64(b.N)/(cpuTime(b)-began).Seconds()/1e6, "Mdecisions/cpu-s")
	b.ReportMetric(got.Memory.BytesPerUser, "B/user")
	b.ReportMetric(float64(got.Users.Asked-got.Users.Unchanged)/1e6, "Mchanged")
}
