package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/segments"
)

// users are the users of a set by id.
type users map[uint32]bool

func (u users) String() string { return fmt.Sprint(u.without(nil)) }

func (u users) without(other users) []uint32 {
	var list []uint32
	for id := range u {
		if !other[id] {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// lists are the suppressed sets of these tests, which only grow.
var lists = []string{"opted-out", "sms/stop"}

// listWorld is a location, commands that change it at random, services that follow it, and
// an oracle that knows who was accepted to leave a list.
type listWorld struct {
	t    *testing.T
	rand *rand.Rand
	dir  string
	at   objects.Location
	// left are the users of each list who left it by an acceptance, and did not join again.
	left map[string]users
	// ever are those who left it by an acceptance at any time. A service that starts without a
	// cache may go back to a generation from before they joined again.
	ever     map[string]users
	keep     string // generations that gc keeps
	services []*listService
	log      []string
	counts   map[string]int
}

type listService struct {
	*segments.Refresher
	cfg   segments.RefresherConfig
	inUse map[string]users
}

// newListWorld has one service for each cache directory; "": it has none.
func newListWorld(t *testing.T, seed uint64, keep string, caches ...string) *listWorld {
	w := &listWorld{t: t, rand: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), keep: keep,
		left: map[string]users{}, ever: map[string]users{}, counts: map[string]int{}}
	w.at = objects.NewDirectory(filepath.Join(w.dir, "pub"))
	want := map[string]users{}
	for _, list := range lists {
		want[list], w.left[list] = users{1: true, 2: true, 3: true}, users{}
		w.ever[list] = users{}
	}
	require.Zero(t, w.build(want))
	for _, cache := range caches {
		if cache != "" {
			cache = filepath.Join(w.dir, cache)
		}
		s := &listService{cfg: segments.RefresherConfig{Source: w.at, Interval: time.Millisecond,
			CacheDir: cache,
			Guarded: func() segments.Guarded {
				return segments.Guarded{MayLose: map[string]float64{lists[0]: 0, lists[1]: 0}}
			},
			Require: func(m *segments.Manifest) error {
				for _, list := range lists {
					if !slices.ContainsFunc(m.Sets, func(s segments.Set) bool { return s.Name == list }) {
						return errors.New("it has no set " + list)
					}
				}
				return nil
			}}}
		w.services = append(w.services, s)
		w.start(s)
	}
	return w
}

func (w *listWorld) write(name string, of users) string {
	var text strings.Builder
	for _, id := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintln(&text, id)
	}
	path := filepath.Join(w.dir, strings.ReplaceAll(name, "/", "-"))
	require.NoError(w.t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// command runs a command, and tells the oracle what became of the lists.
func (w *listWorld) command(accepted []string, args ...string) int {
	var out, talk bytes.Buffer
	before := w.live()
	status := run(w.t.Context(), args, strings.NewReader(""), &out, &talk)
	after := w.live()
	live, _, _ := segments.ReadPointer(w.t.Context(), w.at, "")
	w.log = append(w.log, fmt.Sprintf("%s: %d, %s %v",
		strings.ReplaceAll(strings.Join(args, " "), w.dir, ""), status, live.Generation, after))
	w.counts[fmt.Sprint(args[0], " ", status)]++
	for _, list := range lists {
		for id := range after[list] {
			delete(w.left[list], id)
		}
		if !slices.Contains(accepted, list) || strings.Contains(out.String(), `the acceptance "`+list) {
			continue
		}
		for _, id := range before[list].without(after[list]) {
			w.left[list][id], w.ever[list][id] = true, true
		}
	}
	return status
}

func (w *listWorld) build(want map[string]users, args ...string) int {
	var accepted []string
	for i, arg := range args {
		if arg == "--accept" {
			name, _, _ := strings.Cut(args[i+1], ":")
			accepted = append(accepted, name)
		}
	}
	vip := users{}
	for id := range uint32(20) {
		vip[id] = w.rand.IntN(40) > 0
		if !vip[id] {
			delete(vip, id)
		}
	}
	all := []string{"build", "--to", filepath.Join(w.dir, "pub"), "--segment", "vip=" + w.write("vip.txt", vip)}
	for _, list := range lists {
		if want[list] != nil {
			all = append(all, "--set", list+"="+w.write(list+".txt", want[list]), "--only-grows", list+"=0%")
		}
	}
	return w.command(accepted, append(all, args...)...)
}

// live reads the lists of the live generation; none where it lacks one.
func (w *listWorld) live() map[string]users {
	g, err := segments.ReadLiveManifest(w.t.Context(), w.at)
	if errors.Is(err, segments.ErrNothingLive) {
		return nil
	}
	require.NoError(w.t, err)
	whole, err := g.ReadBitmaps(w.t.Context(), w.at)
	require.NoError(w.t, err)
	of := map[string]users{}
	for i, s := range g.Sets {
		of[s.Name] = users{}
		for id := range uint32(200) {
			if whole.Sets[i].Contains(id) {
				of[s.Name][id] = true
			}
		}
	}
	return of
}

func (w *listWorld) start(s *listService) {
	s.Refresher = segments.NewRefresher(s.cfg)
	require.NoError(w.t, s.Load(w.t.Context()), strings.Join(w.log, "\n"))
	w.check(s)
}

// refresh has a service look at the source.
func (w *listWorld) refresh(s *listService) {
	ctx, cancel := context.WithCancel(w.t.Context())
	before, done := s.Status().CheckedAt, make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	require.Eventually(w.t, func() bool { return s.Status().CheckedAt.After(before) }, 2*time.Minute, time.Millisecond)
	cancel()
	<-done
	w.check(s)
}

// check finds who is lost from the generation in use.
func (w *listWorld) check(s *listService) {
	now := map[string]users{}
	for _, list := range lists {
		now[list] = users{}
		set := s.Current().Set(list)
		if set == nil && s.cfg.CacheDir == "" {
			w.counts["not ready"]++ // it sends to nobody
			return
		}
		require.NotNil(w.t, set)
		for id := range uint32(200) {
			if set.Contains(id) {
				now[list][id] = true
			}
		}
		for _, id := range s.inUse[list].without(now[list]) {
			w.counts["left by acceptance"]++
			require.True(w.t, w.left[list][id] || s.cfg.CacheDir == "" && w.ever[list][id],
				"user %d is lost from %s in %s\n%s",
				id, list, s.Current().Generation(), strings.Join(w.log, "\n"))
		}
	}
	if s.Status().Refusal != nil {
		w.counts["refused"]++
	}
	if !maps.EqualFunc(s.inUse, now, func(a, b users) bool { return maps.Equal(a, b) }) {
		w.log = append(w.log, fmt.Sprintf("  service %d: %s %v",
			slices.Index(w.services, s), s.Current().Generation(), now))
	}
	s.inUse = now
}

// generation is one that is listed.
func (w *listWorld) generation() string {
	list, err := w.at.List(w.t.Context(), segments.GenerationsPrefix)
	require.NoError(w.t, err)
	name, ok := segments.GenerationOf(list[w.rand.IntN(len(list))].Key)
	require.True(w.t, ok)
	return name
}

func (w *listWorld) chance(n int) bool { return w.rand.IntN(n) == 0 }

// step does one thing at random.
func (w *listWorld) step() {
	list := lists[w.rand.IntN(len(lists))]
	pub := filepath.Join(w.dir, "pub")
	switch n := w.rand.IntN(20); {
	case n < 9:
		w.randomBuild()
	case n < 12:
		args := []string{"rollback", w.generation(), "--at", pub}
		var accepted []string
		if w.chance(3) {
			args, accepted = append(args, "--also-roll-back", list), []string{list}
		}
		if w.chance(6) {
			args = append(args, "--keep-set", lists[w.rand.IntN(len(lists))])
		}
		if w.chance(20) {
			args = append(args, "--hold", "x")
		}
		w.command(accepted, args...)
	case n < 13:
		w.command(nil, "release-hold", "--at", pub)
	case n < 14:
		w.command(nil, "gc", "--keep", w.keep, "--grace", "0s", "--delete", "--at", pub)
	case n < 18:
		s := w.services[w.rand.IntN(len(w.services))]
		w.refresh(s)
	default:
		w.start(w.services[w.rand.IntN(len(w.services))])
	}
}

// randomBuild builds from lists that some join and, at times, some leave.
func (w *listWorld) randomBuild() {
	want, args := w.live(), []string(nil)
	for _, list := range lists {
		if want[list] == nil {
			want[list] = users{}
		}
		before := len(want[list])
		removed, added := 0, 0
		if w.chance(3) {
			for id := range want[list] {
				if w.chance(3) {
					delete(want[list], id)
					removed++
				}
			}
		}
		if w.chance(2) {
			for range w.rand.IntN(4) {
				id := uint32(w.rand.IntN(30))
				if !want[list][id] {
					want[list][id] = true
					added++
				}
			}
		}
		if w.chance(20) {
			want[list], removed, added = nil, before, 0
		}
		if before == 0 || removed == 0 || !w.chance(2) {
			continue
		}
		change := fmt.Sprintf("-%d", removed)
		switch {
		case want[list] == nil:
			change = "vanishes"
		case len(want[list]) == 0:
			change = "empties"
		case w.chance(2):
			change = fmt.Sprintf("-%.2f%%", 100*float64(removed)/float64(before))
		}
		args = append(args, "--accept", list+": "+change)
	}
	force := w.chance(3)
	if force {
		args = append(args, "--force")
	}
	if force || len(args) > 0 {
		args = append(args, "--reason", []string{"a", "b", "c"}[w.rand.IntN(3)])
	}
	if w.chance(3) {
		args = append(args, "--sets-anyway")
	}
	w.build(want, args...)
}

// Nobody is lost from a suppressed list in the generation in use whose leaving was not
// accepted by name, whatever is published, forced, rolled back, held and cleaned up.
func TestNobodyIsLostFromAList(t *testing.T) {
	t.Parallel()
	nobodyIsLostFromAList(t, 0, 1)
}

// nobodyIsLostFromAList lives through the random histories with seeds from from to before to.
func nobodyIsLostFromAList(t *testing.T, from, to uint64) {
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newListWorld(t, seed, "4", "a", "b", "c")
			for range 120 {
				w.step()
			}
			t.Log(w.counts)
		})
	}
}

// The same of services that start without a cache again and again, as long as the location
// keeps what they lived through.
func TestNobodyIsLostByAStartWithoutACache(t *testing.T) {
	t.Parallel()
	nobodyIsLostByAStartWithoutACache(t, 0, 1)
}

func nobodyIsLostByAStartWithoutACache(t *testing.T, from, to uint64) {
	for seed := from; seed < to; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newListWorld(t, seed, "100", "", "", "a")
			for range 50 {
				w.step()
				w.start(w.services[0])
			}
			t.Log(w.counts)
		})
	}
}

// A set whose as_of goes backwards is published with a warning. Equal users keep the later time unless the build is
// forced.
func TestAnEarlierAsOfIsAWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	to := filepath.Join(dir, "pub")
	build := func(asOf, ids string, more ...string) string {
		all, out := filepath.Join(dir, "all.txt"), filepath.Join(dir, "out.txt")
		require.NoError(t, os.WriteFile(all, []byte("1\n2\n3\n4\n"), 0o600))
		require.NoError(t, os.WriteFile(out, []byte(ids), 0o600))
		status, report, text := command(t, "", append([]string{"build", "--to", to, "--segment", "all=" + all, "--set",
			"opted-out=" + out, "--as-of", "opted-out=" + asOf}, more...)...)
		require.Zero(t, status, text)
		return report + text
	}
	forced := []string{"--force", "--reason", "test"}
	const earlier = "set opted-out: its as_of 2026-11-20T03:00:00Z is earlier than 2026-11-21T02:00:00Z of the live " +
		"generation"
	build("2026-11-20T02:00Z", "1\n2\n", forced...)
	require.NotContains(t, build("2026-11-21T02:00Z", "1\n2\n3\n", forced...), "is earlier than")
	same := build("2026-11-20T03:00Z", "1\n2\n3\n")
	require.NotContains(t, same, "is earlier than")
	require.Contains(t, same, "unchanged: ")
	require.Contains(t, build("2026-11-20T03:00Z", "1\n2\n4\n", forced...), earlier)
	build("2026-11-21T02:00Z", "1\n2\n4\n", forced...)
	same = build("2026-11-20T03:00Z", "1\n2\n4\n", forced...)
	require.Contains(t, same, earlier)
	require.Contains(t, same, "published ")
}
