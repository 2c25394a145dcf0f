package pressure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/segments/segmentstest"
)

const (
	benchUsers = 10_000_000
	benchDays  = 38 // 30 days, and the 8 days before that limits look back to
)

// benchPolicy allows a message a day and three a week.
func benchPolicy() *capping.Policy {
	limits := []capping.Limit{{Name: "daily", Max: 1, Window: day}, {Name: "weekly", Max: 3, Window: 7 * day}}
	return &capping.Policy{Version: "p", Default: limits,
		Channels: map[string]capping.Channel{"push": 1, "email": 2, "sms": 3}}
}

// benchAudit writes an audit of blasts to every user, each in calls for a million users, and returns its location. The
// calls ask for random users of ten million, or for neighbours. A user gets at most one message a day and three a week.
func benchAudit(b *testing.B, random bool) (objects.Location, time.Time) {
	at, err := objects.Open(b.Context(), b.TempDir(), objects.S3Config{})
	require.NoError(b, err)
	w := audittest.NewWriter(at, 1)
	audittest.Policy(b, at, "p", "")
	begin := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	r := rand.New(rand.NewPCG(3, 3))
	got := make([][]uint8, 8) // messages by day and user
	for i := range got {
		got[i] = make([]uint8, benchUsers)
	}
	order := make([]uint32, benchUsers)
	for i := range order {
		order[i] = uint32(i)
	}
	week := make([]uint8, benchUsers)
	var asked, sends int64
	for d := range benchDays {
		today := got[d%8]
		for user, n := range today { // of 8 days ago
			week[user] -= n
		}
		clear(today)
		if random {
			r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		var records []*audit.Record
		for call := range 10 {
			var allowed, daily, weekly bitmap.Set
			add := [3]*bitmap.Writer{allowed.NewWriter(), daily.NewWriter(), weekly.NewWriter()}
			for _, user := range order[call*benchUsers/10 : (call+1)*benchUsers/10] {
				switch {
				case r.IntN(5) == 0: // not in the audience of this day
					continue
				case week[user] >= 3:
					add[2].Add([]uint32{user})
				case today[user] > 0:
					add[1].Add([]uint32{user})
				default:
					add[0].Add([]uint32{user})
					today[user]++
					week[user]++
					sends++
				}
				asked++
			}
			rec := &audit.Record{Kind: audit.Filter, Instance: w.Instance, Sequence: uint64(d*10 + call + 1),
				At:      capping.InstantOf(begin.AddDate(0, 0, d).Add(time.Duration(9*60+call) * time.Minute)),
				Channel: capping.Channel(1 + d%3), Config: "p", Generation: "g",
				Message: capping.Message{Namespace: []string{"crm", "growth", ""}[d%3], ID: fmt.Sprint("blast-", d)}}
			for i, set := range []*bitmap.Set{&allowed, &daily, &weekly} {
				add[i].Flush()
				if users := set.Bitmap(); users.Cardinality() > 0 {
					g := audit.Group{Outcome: audit.Denied, Limit: []string{"", "daily", "weekly"}[i], Users: users}
					if i == 0 {
						g.Outcome = audit.Allowed
					}
					rec.Groups = append(rec.Groups, g)
				}
			}
			records = append(records, rec)
		}
		w.Roll(b, audittest.Frames(records...)...)
	}
	b.Logf("%d million decisions, %d million sends", asked/1e6, sends/1e6)
	return at, begin.AddDate(0, 0, benchDays)
}

// BenchmarkPressure counts 30 days of blasts to ten million users, from the files on.
func BenchmarkPressure(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	lists := make([][]uint32, 4)
	for user := range uint32(benchUsers) {
		if at := r.IntN(5); at < 4 {
			lists[at] = append(lists[at], user)
		}
	}
	var bitmaps []*bitmap.Bitmap
	for _, list := range lists {
		bitmaps = append(bitmaps, bitmap.OfSorted(list))
	}
	in := segmentstest.Generation(b, []string{"new", "active", "lapsed", "vip"}, bitmaps...).Snapshot()
	for _, random := range []bool{false, true} {
		name := map[bool]string{false: "neighbours", true: "random users"}[random]
		at, until := benchAudit(b, random)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cfg := Config{Until: capping.InstantOf(until), Weeks: 5, Policy: benchPolicy()}
				cfg.In(in)
				a := archive.New(at, func([]byte) (*capping.Policy, error) { return benchPolicy(), nil })
				got, err := Of(context.Background(), a, cfg)
				require.NoError(b, err)
				require.NotEmpty(b, got.HeldBack[0].TakenBy)
			}
		})
	}
}
