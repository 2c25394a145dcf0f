package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/terminal"
)

// interrupted runs a function before one of the calls that read or change the location.
type interrupted struct {
	objects.Location
	mu    sync.Mutex
	steps int // calls until the function runs
	do    func()
}

func (i *interrupted) step() {
	i.mu.Lock()
	i.steps--
	now := i.steps == 0
	i.mu.Unlock()
	if now {
		i.do()
	}
}

func (i *interrupted) ReadTagged(ctx context.Context, key, tag string) ([]byte, string, error) {
	i.step()
	return i.Location.ReadTagged(ctx, key, tag)
}

func (i *interrupted) Put(ctx context.Context, key string, body []byte) (bool, error) {
	i.step()
	return i.Location.Put(ctx, key, body)
}

func (i *interrupted) Overwrite(ctx context.Context, key string, body []byte) error {
	i.step()
	return i.Location.Overwrite(ctx, key, body)
}

func (i *interrupted) Replace(ctx context.Context, key string, body []byte, tag string) (string, error) {
	i.step()
	return i.Location.Replace(ctx, key, body, tag)
}

// amendRace races builds against amends. Amend n adds a user to each of two sets, of which one only grows, and speaks
// for minute n. A build has its own segment, and the sets as they were in an earlier minute.
type amendRace struct {
	t       *testing.T
	rand    *rand.Rand
	dir     string
	at      objects.Location
	name    string
	kind    string
	repeats int // how often a command lost a race and repeated its work
}

// raceSets are the sets of a race: the first only grows.
var raceSets = []string{"opted-out", "paused"}

func (r *amendRace) minute(n int) string {
	return segmentstest.Epoch.Add(time.Duration(n) * time.Minute).Format(time.RFC3339)
}

// member returns the user that amend n adds to a set.
func (r *amendRace) member(set, n int) uint32 { return uint32(1000 + 10_000*set + n) }

// list returns the users of a set as of a minute.
func (r *amendRace) list(set, minute int) (users []uint32) {
	for id := range uint32(100) {
		users = append(users, id)
	}
	for n := 1; n <= minute; n++ {
		users = append(users, r.member(set, n))
	}
	return users
}

// write writes the ids of users.
func (r *amendRace) write(users ...uint32) string {
	file, err := os.CreateTemp(r.dir, "*.txt")
	require.NoError(r.t, err)
	for _, user := range users {
		_, err = file.Write(append(spellings[r.kind](nil, user), '\n'))
		require.NoError(r.t, err)
	}
	require.NoError(r.t, file.Close())
	return file.Name()
}

// build returns a build whose lists speak for a minute; its segment has one user.
func (r *amendRace) build(user, minute int) *buildCommand {
	c := &buildCommand{To: r.name, IDs: r.kind, Segment: []string{"vip=" + r.write(uint32(user))},
		OnlyGrows: raceSets[:1]}
	for i, set := range raceSets {
		c.Set = append(c.Set, set+"="+r.write(r.list(i, minute)...))
		c.AsOf = append(c.AsOf, set+"="+r.minute(minute))
	}
	wide := percentage(1000)
	c.Bounds.MaxChange, c.Bounds.MaxUnassigned = &wide, &wide
	c.Bounds.MaxWeekChange = &wide
	return c
}

// amend returns an amend of a minute. The set that only grows gets the new user alone.
func (r *amendRace) amend(minute int, set int) *amendCommand {
	c := &amendCommand{To: r.name, OnlyGrows: set == 0, AsOf: []string{raceSets[set] + "=" + r.minute(minute)}}
	users := r.list(set, minute)
	if set == 0 {
		users = []uint32{r.member(set, minute)}
	}
	c.Set = []string{raceSets[set] + "=" + r.write(users...)}
	wide := percentage(1000)
	c.Bounds.MaxChange, c.Bounds.MaxWeekChange = &wide, &wide
	return c
}

// work runs a command on a location, which must succeed.
func (r *amendRace) work(command any, at objects.Location) (talk string) {
	var out, err bytes.Buffer
	on := &terminal.Streams{Program: "segmentbuild", Out: terminal.NewWriter(&out), Err: terminal.NewWriter(&err)}
	report := &buildReport{Status: "failed"}
	var fault error
	switch c := command.(type) {
	case *buildCommand:
		plan, planErr := c.plan()
		require.NoError(r.t, planErr)
		fault = c.work(r.t.Context(), on, plan, at, report)
	case *amendCommand:
		plan, planErr := c.plan()
		require.NoError(r.t, planErr)
		fault = c.work(r.t.Context(), on, plan, at, report)
	}
	require.NoError(r.t, fault, err.String())
	return err.String()
}

// within runs a command, and another one before one of its calls to the location.
func (r *amendRace) within(command func(objects.Location) string, other func()) (talk string) {
	at := &interrupted{Location: r.at, steps: 1 + r.rand.IntN(20), do: other}
	talk = command(at)
	if at.steps > 0 { // the command made fewer calls
		other()
	}
	return talk
}

// round races a build against the amends of a minute: at the same time, or one within the other at a random step.
func (r *amendRace) round(minute int) {
	prepared := r.build(minute, r.rand.IntN(minute))
	build := func(at objects.Location) string { return r.work(prepared, at) }
	set := r.rand.IntN(len(raceSets) + 1)
	amend := func(at objects.Location) (talk string) {
		for i := range raceSets {
			if set == i || set == len(raceSets) {
				talk += r.work(r.amend(minute, i), at)
			}
		}
		return talk
	}
	var talk string
	switch {
	case minute%3 == 0:
		var wg sync.WaitGroup
		var other string
		wg.Go(func() { other = amend(r.at) })
		talk = build(r.at)
		wg.Wait()
		talk += other
	case minute%3 == 1:
		talk = r.within(build, func() { amend(r.at) })
	default:
		talk = r.within(amend, func() { build(r.at) })
	}
	r.repeats += strings.Count(talk, "another process published")
	for i := range raceSets { // amends of this minute that the round left out
		if set != i && set != len(raceSets) {
			r.work(r.amend(minute, i), r.at)
		}
	}
}

// check compares the live generation with the oracle: the segment of the newest build, and every amended user.
func (r *amendRace) check(minute int) {
	g, err := segmentstest.ReadLive(r.t.Context(), r.at)
	require.NoError(r.t, err)
	require.Equal(r.t, spelled(r.kind, uint32(minute)), namesOf(r.t, g, g.Bitmaps[0]),
		"the segment of the build of round %d", minute)
	for i, set := range raceSets {
		require.Equal(r.t, set, g.Manifest.Sets[i].Name)
		require.Equal(r.t, spelled(r.kind, r.list(i, minute)...), namesOf(r.t, g, g.Sets[i]),
			"set %s after round %d", set, minute)
		is := g.Manifest.Sets[i]
		require.Equal(r.t, r.minute(minute), is.AmendedAsOf.Format(time.RFC3339))
		require.False(r.t, is.AsOf.After(is.AmendedAsOf), "no set speaks for a time after its newest source")
	}
}

// spelled returns the ids of users, sorted.
func spelled(kind string, users ...uint32) (list []string) {
	for _, user := range users {
		list = append(list, string(spellings[kind](nil, user)))
	}
	slices.Sort(list)
	return list
}

// namesOf returns the ids of a bitmap's users, sorted.
func namesOf(t *testing.T, g *segments.Generation, b *bitmap.Bitmap) (list []string) {
	for number := range b.All() {
		text, err := g.ID(nil, number)
		require.NoError(t, err)
		list = append(list, string(text))
	}
	slices.Sort(list)
	return list
}

// raceAmends runs rounds of a race with ids of a kind, and checks the live generation after each one.
func raceAmends(t *testing.T, name, kind string, rounds int) {
	r := &amendRace{t: t, rand: rand.New(rand.NewPCG(24, uint64(rounds))), dir: t.TempDir(), name: name,
		at: objectstest.Open(t, name), kind: kind}
	r.work(r.build(0, 0), r.at)
	for minute := 1; minute <= rounds; minute++ {
		r.round(minute)
		r.check(minute)
	}
	require.Positive(t, r.repeats, "a race that nobody loses proves nothing")
	t.Logf("%s: %d rounds, %d lost races", name, rounds, r.repeats)
	_, err := segments.ReadLiveManifest(t.Context(), r.at)
	require.NoError(t, err)
}

func TestABuildAndAnAmendLoseNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"dense", "uuid"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			raceAmends(t, t.TempDir(), kind, 12)
		})
	}
}
