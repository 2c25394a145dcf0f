package segments_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/objects/s3test"
	"capper/internal/segments"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
)

// numbered returns a candidate of the segments vip and new and the set out.
func numbered(t testing.TB, scheme *ids.Scheme, vip, fresh, out []string) *publish.Candidate {
	t.Helper()
	d, bitmaps := segmentstest.Numbered(t, scheme, vip, fresh, out)
	return &publish.Candidate{Names: []string{"vip", "new"}, Bitmaps: bitmaps[:2],
		Sets: []publish.Set{{Name: "out", Bitmap: bitmaps[2]}}, Scheme: scheme, Dictionary: d}
}

func publishNumbered(t testing.TB, store objects.Location, clock func() time.Time,
	c *publish.Candidate) *segments.Manifest {
	t.Helper()
	base, err := publish.ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	p := publish.Publisher{Location: store, ToolVersion: "test", Clock: clock}
	done, err := p.Publish(t.Context(), c, base, "")
	require.NoError(t, err)
	return done.Manifest
}

func uuids(first, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", first+i))
	}
	return list
}

// codesOf returns the segment codes of ids, and whether each is in the set out.
func codesOf(t testing.TB, s *segments.Snapshot, list ...string) (codes []uint8, out []bool) {
	t.Helper()
	var users []capping.UserID
	for _, image := range segmentstest.Images(t, s.IDs(), list...) {
		users = append(users, capping.UserID(image))
	}
	numbers := make([]uint32, len(users))
	s.Numbers(users, numbers)
	codes = make([]uint8, len(users))
	s.Lookup(numbers, codes)
	for _, n := range numbers {
		out = append(out, s.Set("out").Contains(n))
	}
	return codes, out
}

func TestRefresherLoadsIDsOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind, list := range map[ids.Kind][]string{
		ids.UUID:   uuids(0, 4),
		ids.Uint64: {"7", "18446744073709551615", "4294967295", "0"},
		ids.Text:   {"a@x.com", "A@x.com", "4294967295", "x"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			objectstest.OnEveryLocation(t, func(t *testing.T, _ string, store objects.Location) {
				clock, cache := segmentstest.Stepping(), t.TempDir()
				scheme := ids.New(kind, segmentstest.Key(1))
				c := numbered(t, scheme, list[:1], list[1:2], list[1:3])
				m := publishNumbered(t, store, clock, c)
				require.Equal(t, segments.IDsFormatVersion, m.FormatVersion)
				require.Equal(t, kind.String(), m.IDs.Kind)
				require.EqualValues(t, 3, m.IDs.Count)
				for start := range 3 { // from the source, from the cache, and from the cache while the source is down
					r := segments.NewRefresher(segments.RefresherConfig{Source: store, CacheDir: cache, Clock: clock})
					if start == 2 {
						require.NoError(t, store.Delete(t.Context(), segments.CurrentKey))
					}
					require.NoError(t, r.Load(t.Context()))
					s := r.Current()
					require.Equal(t, kind, s.IDs().Kind())
					require.Equal(t, scheme.Check(), s.IDs().Check())
					codes, out := codesOf(t, s, list...)
					require.Equal(t, []uint8{1, 2, 0, 0}, codes)
					require.Equal(t, []bool{false, true, true, false}, out)
				}
			})
		})
	}
}

func TestDenseGenerationsHaveTheDenseScheme(t *testing.T) {
	t.Parallel()
	store := objectstest.Open(t, t.TempDir())
	goLive(t, store, segmentstest.Stepping(), []string{"vip"}, bitmap.Of(1, 1<<32-1))
	g, err := segmentstest.ReadLive(t.Context(), store)
	require.NoError(t, err)
	s := g.Snapshot()
	require.Equal(t, ids.Dense, s.IDs().Kind())
	numbers := make([]uint32, 2)
	s.Numbers([]capping.UserID{5, capping.MaxDense}, numbers)
	require.Equal(t, []uint32{5, 1<<32 - 1}, numbers)
	_, err = store.Read(t.Context(), segments.IDsKey, 100)
	require.ErrorIs(t, err, objects.ErrNotFound)
}

func TestNumbersFollowTheGeneration(t *testing.T) {
	t.Parallel()
	store, clock := objectstest.Open(t, t.TempDir()), segmentstest.Stepping()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	r := segments.NewRefresher(segments.RefresherConfig{Source: store, CacheDir: t.TempDir(), Clock: clock})
	list := uuids(0, 2000)
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		vip, fresh, out := list[:400], list[400:1000], list[900:1500]
		publishNumbered(t, store, clock, numbered(t, scheme, vip, fresh, out))
		if r.Current() == nil {
			require.NoError(t, r.Load(t.Context()))
		} else {
			require.NoError(t, r.Refresh(t.Context()))
		}
		codes, isOut := codesOf(t, r.Current(), list...)
		for i := range list {
			want := uint8(0)
			if i < 1000 {
				want = 2
			}
			if i < 400 {
				want = 1
			}
			require.Equal(t, want, codes[i], i)
			require.Equal(t, i >= 900 && i < 1500, isOut[i], i)
		}
	}
}

func TestOtherIDsAreRefused(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	for name, spoil := range map[string]struct {
		do   func(t *testing.T, store objects.Location, clock func() time.Time)
		want string
	}{
		"ids.json is missing": {func(t *testing.T, store objects.Location, _ func() time.Time) {
			require.NoError(t, store.Delete(t.Context(), segments.IDsKey))
		}, "has ids of the kind uuid, but file ids.json with the hash key is missing"},
		"ids.json has another key": {func(t *testing.T, store objects.Location, _ func() time.Time) {
			require.NoError(t, store.Overwrite(t.Context(), segments.IDsKey,
				ids.File{Kind: ids.UUID, Key: segmentstest.Key(2)}.Encode()))
		}, "has another key for hashing ids than the file ids.json"},
		"ids.json has another kind": {func(t *testing.T, store objects.Location, _ func() time.Time) {
			require.NoError(t, store.Overwrite(t.Context(), segments.IDsKey,
				ids.File{Kind: ids.Text, Key: segmentstest.Key(1)}.Encode()))
		}, "has ids of the kind uuid, but file ids.json names the kind text"},
		"ids.json is damaged": {func(t *testing.T, store objects.Location, _ func() time.Time) {
			require.NoError(t, store.Overwrite(t.Context(), segments.IDsKey, []byte(`{"kind": "uuid"}`)))
		}, "ids.json: key: is missing"},
		"the location was made anew": {func(t *testing.T, store objects.Location, clock func() time.Time) {
			require.NoError(t, store.Delete(t.Context(), segments.IDsKey))
			require.NoError(t, store.Delete(t.Context(), segments.CurrentKey))
			publishNumbered(t, store, clock,
				numbered(t, ids.New(ids.UUID, segmentstest.Key(2)), uuids(0, 3), uuids(3, 3), uuids(0, 1)))
		}, "which is in use: the key's fingerprint is"},
		"the location became dense": {func(t *testing.T, store objects.Location, clock func() time.Time) {
			require.NoError(t, store.Delete(t.Context(), segments.IDsKey))
			require.NoError(t, store.Delete(t.Context(), segments.CurrentKey))
			goLive(t, store, clock, []string{"vip"}, bitmap.Of(1))
		}, "has ids of the kind dense, but generation "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, clock, cache := objectstest.Open(t, t.TempDir()), segmentstest.Stepping(), t.TempDir()
			first := publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 3), uuids(3, 3), uuids(0, 1)))
			config := segments.RefresherConfig{Source: store, CacheDir: cache, Clock: clock}
			r := segments.NewRefresher(config)
			require.NoError(t, r.Load(t.Context()))
			publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 4), uuids(4, 3), uuids(0, 1)))
			spoil.do(t, store, clock)

			err := r.Refresh(t.Context())
			require.ErrorContains(t, err, spoil.want)
			require.Equal(t, []string{segments.ReasonIDs}, r.Status().Refusal.Reasons())
			require.Equal(t, first.Generation, r.Current().Generation(), "the generation in use stays")
			codes, _ := codesOf(t, r.Current(), uuids(0, 7)...)
			require.Equal(t, []uint8{1, 1, 1, 2, 2, 2, 0}, codes)

			if name == "the location was made anew" || name == "the location became dense" {
				return // a start cannot know, but the store does
			}
			r = segments.NewRefresher(config)
			require.NoError(t, r.Load(t.Context()), "a start uses the cached generation")
			require.Equal(t, first.Generation, r.Current().Generation())
			require.Contains(t, r.Status().Error, spoil.want)
			config.CacheDir = ""
			require.ErrorContains(t, segments.NewRefresher(config).Load(t.Context()), spoil.want)
		})
	}
}

// TestDamagedDictionariesAreRefused flips bits of a dictionary, cuts it, and exchanges it.
func TestDamagedDictionariesAreRefused(t *testing.T) {
	t.Parallel()
	folder, clock := t.TempDir(), segmentstest.Stepping()
	store := objectstest.Open(t, folder)
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	m := publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 300), uuids(300, 300), uuids(0, 1)))
	key := m.IDs.Dictionary[0].Key
	whole, err := store.Read(t.Context(), key, 1<<20)
	require.NoError(t, err)
	refused := func(raw []byte, what string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, key), raw, 0o644))
		_, err := segments.ReadGeneration(t.Context(), store, m.Generation)
		require.ErrorContains(t, err, "dictionary", what)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		bit := random.IntN(8 * len(whole))
		raw := append([]byte(nil), whole...)
		raw[bit/8] ^= 1 << (bit % 8)
		refused(raw, fmt.Sprint("bit ", bit))
	}
	for percent := range 100 {
		refused(whole[:len(whole)*percent/100], fmt.Sprint(percent, " %"))
	}
	other, _ := segmentstest.Numbered(t, scheme, uuids(1, 600))
	refused(other.Bytes(), "a dictionary of another generation")

	require.NoError(t, os.WriteFile(filepath.Join(folder, key), whole, 0o644))
	cache := t.TempDir()
	config := segments.RefresherConfig{Source: store, CacheDir: cache, Clock: clock}
	require.NoError(t, segments.NewRefresher(config).Load(t.Context()))
	cached, err := filepath.Glob(filepath.Join(cache, "*", key))
	require.NoError(t, err)
	require.Len(t, cached, 1)
	whole[len(whole)/2] ^= 1
	require.NoError(t, os.WriteFile(cached[0], whole, 0o644))
	r := segments.NewRefresher(config)
	require.NoError(t, r.Load(t.Context()), "the source still has it")
	codes, _ := codesOf(t, r.Current(), uuids(299, 2)...)
	require.Equal(t, []uint8{1, 2}, codes)
}

// TestGuardCountsUsersAcrossNumbers checks that a service finds users who left a set, although all numbers have
// shifted, and finds none where only numbers have shifted.
func TestGuardCountsUsersAcrossNumbers(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	for name, start := range map[string]func(*segments.RefresherConfig, *segments.Refresher) *segments.Refresher{
		"a refresh": func(_ *segments.RefresherConfig, r *segments.Refresher) *segments.Refresher { return r },
		"a start": func(c *segments.RefresherConfig, _ *segments.Refresher) *segments.Refresher {
			return segments.NewRefresher(*c)
		},
		"a start without a cache": func(c *segments.RefresherConfig, _ *segments.Refresher) *segments.Refresher {
			c.CacheDir = ""
			return segments.NewRefresher(*c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, clock := objectstest.Open(t, t.TempDir()), segmentstest.Stepping()
			config := segments.RefresherConfig{Source: store, CacheDir: t.TempDir(), Clock: clock,
				Guarded: func() segments.Guarded {
					return segments.Guarded{MayLose: map[string]float64{"out": segments.DefaultMayLose}}
				}}
			publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 50), uuids(50, 50), uuids(100, 100)))
			r := segments.NewRefresher(config)
			require.NoError(t, r.Load(t.Context()))

			shifted := publishNumbered(t, store, clock,
				numbered(t, scheme, uuids(0, 40), uuids(1000, 70), uuids(99, 101)))
			r = start(&config, r)
			if r.Current() == nil {
				require.NoError(t, r.Load(t.Context()))
			} else {
				require.NoError(t, r.Refresh(t.Context()))
			}
			require.Equal(t, shifted.Generation, r.Current().Generation(), "nobody left the set")

			// As many users as before, but another one: the bitmaps look alike.
			publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 40), uuids(1000, 70),
				append(uuids(99, 100), "018f3c4e-7a1b-7c3d-9e5f-ffffffffffff")))
			r = start(&config, r)
			if r.Current() == nil {
				require.NoError(t, r.Load(t.Context()))
				require.Contains(t, r.Status().Error, "1 of 101 users")
			} else {
				require.ErrorContains(t, r.Refresh(t.Context()), "1 of 101 users")
			}
			require.Equal(t, shifted.Generation, r.Current().Generation(), "the generation in use stays")
		})
	}
}

// built returns the candidate of a build from a text file of ids.
func built(t testing.TB, scheme *ids.Scheme, names bool, list []string) *publish.Candidate {
	t.Helper()
	file := filepath.Join(t.TempDir(), "vip.txt")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o644))
	plan := &ingest.Plan{Segments: []ingest.Definition{{Name: "vip", Inputs: []ingest.Input{{Path: file}}}}}
	result, err := ingest.Run(t.Context(), plan, ingest.Config{Scheme: scheme, Names: names}, func(string) {})
	require.NoError(t, err)
	return result.Candidate
}

// requireBatchBack checks that the ids of many numbers are those of each number, in ascending order and in another one.
func requireBatchBack(t *testing.T, s *segments.Snapshot, list []string) {
	t.Helper()
	numbers := make([]uint32, 0, len(list))
	for i := range list {
		numbers = append(numbers, uint32(i))
	}
	for range 2 {
		var texts []byte
		var ends []uint32
		for _, number := range numbers {
			var err error
			if s.IDs().Width() > 0 {
				id, err := s.Back(nil, number)
				require.NoError(t, err)
				texts, err = s.IDs().AppendPacked(texts, id)
				require.NoError(t, err)
				continue
			}
			texts, err = s.Back(texts, number)
			require.NoError(t, err)
			ends = append(ends, uint32(len(texts)))
		}
		if s.IDs().Width() > 0 {
			packed, err := s.BackPacked([]byte{}, numbers)
			require.NoError(t, err)
			require.Equal(t, texts, packed)
		} else {
			got, gotEnds := s.BackTexts(nil, nil, numbers)
			require.Equal(t, texts, got)
			require.Equal(t, ends, gotEnds)
			require.EqualValues(t, len(texts), s.TextBytes(numbers))
		}
		slices.Reverse(numbers)
	}
}

func TestNumbersLeadBackToIDs(t *testing.T) {
	t.Parallel()
	for kind, list := range map[ids.Kind][]string{
		ids.UUID: uuids(0, 3000), ids.Uint64: {"7", "18446744073709551615"}, ids.Text: {"a@x.com", "é", " x"},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			folder, clock, cache := t.TempDir(), segmentstest.Stepping(), t.TempDir()
			store := objectstest.Open(t, folder)
			scheme := ids.New(kind, segmentstest.Key(1))
			c := built(t, scheme, true, list)
			m := publishNumbered(t, store, clock, c)
			config := segments.RefresherConfig{Source: store, CacheDir: cache, Clock: clock}
			for range 2 { // from the source, and from the cache
				r := segments.NewRefresher(config)
				require.NoError(t, r.Load(t.Context()))
				s := r.Current()
				require.True(t, s.HasNames())
				for _, id := range list {
					numbers := make([]uint32, 1)
					s.Numbers([]capping.UserID{capping.UserID(segmentstest.Images(t, scheme, id)[0])}, numbers)
					text, err := s.Back([]byte("x"), numbers[0])
					require.NoError(t, err)
					require.Equal(t, "x"+id, string(text))
					image := capping.UserID(segmentstest.Images(t, scheme, id)[0])
					require.Equal(t, "x"+id, string(s.Name([]byte("x"), image)))
				}
				if kind != ids.Uint64 {
					require.Equal(t, "ximage:0000000000000007", string(s.Name([]byte("x"), 7)))
				}
				requireBatchBack(t, s, list)
			}
			if kind == ids.Uint64 {
				require.Nil(t, m.IDs.Dictionary[0].Back)
				return
			}
			key := m.IDs.Dictionary[0].Back.Key
			whole, err := store.Read(t.Context(), key, 1<<20)
			require.NoError(t, err)
			random := rand.New(rand.NewPCG(3, 4))
			for i := range 1000 {
				raw := slices.Clone(whole)
				bit := random.IntN(8 * len(whole))
				if raw[bit/8] ^= 1 << (bit % 8); i%10 == 0 {
					raw = whole[:random.IntN(len(whole))]
				}
				require.NoError(t, os.WriteFile(filepath.Join(folder, key), raw, 0o644))
				_, err := segments.ReadGeneration(t.Context(), store, m.Generation)
				require.ErrorContains(t, err, "way back to ids")
			}
			config.CacheDir = ""
			require.ErrorContains(t, segments.NewRefresher(config).Load(t.Context()), "way back to ids")

			nameless := objectstest.Open(t, t.TempDir())
			publishNumbered(t, nameless, clock, built(t, scheme, false, list))
			g, err := segmentstest.ReadLive(t.Context(), nameless)
			require.NoError(t, err)
			require.False(t, g.Snapshot().HasNames())
			_, err = g.Snapshot().Back(nil, 0)
			require.ErrorIs(t, err, segments.ErrNoNames)
			image := capping.UserID(segmentstest.Images(t, scheme, list[0])[0])
			require.Equal(t, fmt.Sprintf("image:%016x", uint64(image)), string(g.Snapshot().Name(nil, image)))
			_, err = g.Snapshot().BackPacked(nil, []uint32{0})
			require.ErrorIs(t, err, segments.ErrNoNames)
		})
	}
}

// TestGuardFollowsAcceptancesAcrossNumbers checks which acceptances cover users who left a set while all numbers
// changed.
func TestGuardFollowsAcceptancesAcrossNumbers(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	usersOf := func(c *publish.Candidate) string {
		m := segments.Manifest{IDs: segments.DescribeIDs(scheme, c.Dictionary, nil)}
		return m.Users(&segments.Segment{SHA256: c.SHA256("out")})
	}
	accepting := func(from string, c *publish.Candidate, removed uint64) segments.Accepted {
		return segments.Accepted{Set: "out", FromSHA256: from, ToSHA256: usersOf(c), Before: 100, Removed: removed,
			Change: "-50%", Reason: "because"}
	}
	for name, c := range map[string]struct {
		removed uint64 // by the acceptance that leads from the first generation to the second
		other   bool   // the second generation has an acceptance that does not start at the first generation
		third   bool   // a third generation follows, with other numbers
		refused bool
	}{
		"a chain to the end":              {removed: 50},
		"a chain that accepts less":       {removed: 10, refused: true},
		"an acceptance beside the chain":  {removed: 10, other: true, refused: true},
		"a chain that new numbers broke":  {removed: 50, third: true},
		"less than left, and new numbers": {removed: 10, third: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, clock := objectstest.Open(t, t.TempDir()), segmentstest.Stepping()
			first := publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 50), uuids(50, 50), uuids(100, 100)))
			r := segments.NewRefresher(segments.RefresherConfig{Source: store, Clock: clock,
				Guarded: func() segments.Guarded {
					return segments.Guarded{MayLose: map[string]float64{"out": segments.DefaultMayLose}}
				}})
			require.NoError(t, r.Load(t.Context()))
			second := numbered(t, scheme, uuids(0, 50), uuids(50, 50), uuids(150, 50))
			if c.other {
				second.Accepted = append(second.Accepted, accepting(strings.Repeat("a", 64), second, 60))
			}
			second.Accepted = append(second.Accepted, accepting(first.Users(&first.Sets[0].Segment), second, c.removed))
			m := publishNumbered(t, store, clock, second)
			if c.third {
				m = publishNumbered(t, store, clock, numbered(t, scheme, uuids(0, 50), uuids(50, 50), uuids(150, 60)))
			}
			if err := r.Refresh(t.Context()); c.refused {
				require.ErrorContains(t, err, "50 of 100 users")
				return
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, m.Generation, r.Current().Generation())
		})
	}
}

// TestDenseIDsNeedNoRightToReadIDs checks a service that may not list its bucket: S3 then denies reading a missing
// ids.json.
func TestDenseIDsNeedNoRightToReadIDs(t *testing.T) {
	t.Parallel()
	endpoint := s3test.Proxy(t, func(server http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/"+segments.IDsKey) {
				server.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte("<Error><Code>AccessDenied</Code><Message>x</Message></Error>"))
		})
	})
	for _, dense := range []bool{true, false} {
		location, clock := "s3://"+s3test.Bucket(t)+"/prod", segmentstest.Stepping()
		store := objectstest.Open(t, location)
		var m *segments.Manifest
		if dense {
			m = goLive(t, store, clock, []string{"vip"}, bitmap.Of(1))
		} else {
			m = publishNumbered(t, store, clock, numbered(t, ids.New(ids.UUID, segmentstest.Key(1)), uuids(0, 3),
				uuids(3, 3), uuids(0, 1)))
		}
		denied, err := objects.Open(t.Context(), location, objects.S3Config{Endpoint: endpoint})
		require.NoError(t, err)
		r := segments.NewRefresher(segments.RefresherConfig{Source: denied, Clock: clock})
		err = r.Load(t.Context())
		if !dense {
			require.ErrorContains(t, err, "AccessDenied")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, m.Generation, r.Current().Generation())
		require.NoError(t, r.Refresh(t.Context()))
	}
}
