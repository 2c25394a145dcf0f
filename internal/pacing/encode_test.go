package pacing

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// encoded returns the encoded runs of the log.
func (l *Log) encoded() (data []byte) {
	for _, run := range l.Runs {
		data = AppendRun(data, run)
	}
	return data
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		log := &Log{Total: r.Int64N(3) * 1_000_000}
		log.irregular(r, r.IntN(50), Time(1_800_000_000_000_000))
		require.Len(t, log.encoded(), len(log.Runs)*RunSize)
		again, err := DecodeRuns(log.encoded(), log.Total)
		require.NoError(t, err)
		require.Equal(t, log, again)

		grant := &Remembered{Fingerprint: [8]byte{byte(seed), 2, 3}, More: seed%2 == 0}
		grant.irregular(r, 1+r.IntN(50), Time(1_800_000_000_000_000))
		read, err := DecodeRemembered(grant.Append([]byte("x"))[1:])
		require.NoError(t, err)
		require.Equal(t, grant, read)
	}
}

// TestGreatestRun encodes the largest possible run.
func TestGreatestRun(t *testing.T) {
	t.Parallel()
	log := &Log{Total: 1<<48 - 1, Runs: []Run{{At: 1<<55 - 1, Every: MostEvery, Burst: MostBurst, First: 1<<48 - 2}}}
	again, err := DecodeRuns(log.encoded(), log.Total)
	require.NoError(t, err)
	require.Equal(t, log, again)
}

// TestWhatIsNoLog checks that runs which no log can have are rejected.
func TestWhatIsNoLog(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]*Log{
		"a run without a permit":             {Total: 5, Runs: []Run{{10, 0, 1, 5}}},
		"a run that ends before it begins":   {Total: 9, Runs: []Run{{10, 0, 1, 7}, {20, 0, 1, 6}}},
		"a total that is less than the last": {Total: 4, Runs: []Run{{10, 0, 1, 5}}},
		"no burst":                           {Total: 9, Runs: []Run{{10, 5, 0, 0}}},
		"a burst without slots":              {Total: 9, Runs: []Run{{10, 0, 3, 0}}},
		"runs that overlap":                  {Total: 9, Runs: []Run{{10, 5, 1, 0}, {19, 0, 1, 3}}},
		"runs out of order":                  {Total: 9, Runs: []Run{{10, 0, 1, 0}, {9, 0, 1, 3}}},
		"slots beyond all times":             {Total: 1 << 47, Runs: []Run{{10, MostEvery, 1, 0}}},
	} {
		_, err := DecodeRuns(log.encoded(), log.Total)
		require.ErrorIs(t, err, errRuns, name)
	}
	_, err := DecodeRuns(make([]byte, RunSize+1), 1)
	require.ErrorContains(t, err, "must be a multiple")

	grant := &Remembered{Log: Log{Total: 9, Runs: []Run{{10, 0, 1, 3}}}}
	_, err = DecodeRemembered(grant.Append(nil))
	require.ErrorIs(t, err, errRuns, "permits of a grant begin with number 0")
	for _, data := range []string{"", strings.Repeat("\x00", RememberedHeader-1),
		strings.Repeat("\x02", RememberedHeader)} {
		_, err = DecodeRemembered([]byte(data))
		require.Error(t, err, "%q", data)
	}
}

// use runs the operations of stores on a decoded log. The operations must not panic, must end, and must place no slot
// before the newest.
func (l *Log) use(t *testing.T) {
	newest, _ := l.Newest()
	limits := []Limit{{3, time.Second}, {5000, time.Hour}, {1, time.Millisecond}}
	ask := &Ask{Targets: []Target{{Limits: limits}}, Permits: 50, MaxWait: time.Minute}
	StateOf(newest, &ask.Targets[0], l)
	for range 2 {
		at, ok := l.Newest()
		for _, run := range Place(newest, ask, []*Log{l}).Runs {
			require.True(t, !ok || run.At >= at)
		}
		require.NoError(t, l.check())
		l.Merge(newest, limits)
		require.NoError(t, l.check())
	}
}

func FuzzDecodeRuns(f *testing.F) {
	log := &Log{}
	log.irregular(rand.New(rand.NewPCG(1, 7)), 20, Time(1_800_000_000_000_000))
	f.Add(log.encoded(), log.Total)
	f.Add([]byte{}, int64(7))
	f.Add(AppendRun(nil, Run{1<<55 - 1, MostEvery, MostBurst, 1<<48 - 2}), int64(1<<48-1))
	f.Fuzz(func(t *testing.T, data []byte, total int64) {
		log, err := DecodeRuns(data, total)
		if err != nil {
			return
		}
		require.Equal(t, data, append([]byte{}, log.encoded()...))
		require.Equal(t, total, log.Total)
		if total < 1<<47 && len(log.Runs) > 0 && log.Runs[len(log.Runs)-1].At < 1<<54 {
			log.use(t)
		}
	})
}

func FuzzDecodeRemembered(f *testing.F) {
	grant := &Remembered{Fingerprint: [8]byte{1, 2, 3}, More: true}
	grant.irregular(rand.New(rand.NewPCG(1, 8)), 20, Time(1_800_000_000_000_000))
	f.Add(grant.Append(nil))
	f.Add(new(Remembered).Append(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		grant, err := DecodeRemembered(data)
		if err != nil {
			return
		}
		require.Equal(t, data, grant.Append(nil))
		permits := 0
		for _, run := range grant.WaitRuns(1_800_000_000_000_000) {
			require.Positive(t, run.Permits)
			permits += run.Permits
		}
		require.Equal(t, grant.Total, int64(permits))
	})
}
