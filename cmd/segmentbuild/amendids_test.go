package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// amendedLists is the oracle of a location that a build made and amends changed.
type amendedLists struct {
	t     *testing.T
	rand  *rand.Rand
	kind  string
	names bool
	dir   string
	root  string
	lists map[string]map[uint32]bool // users by segment and set; a user is in one segment
}

var (
	amendedSegments = []string{"vip", "new"}
	amendedSets     = []string{"opted-out", "paused", "tz/Asia/Singapore", "tz/Europe/Berlin"}
)

// population is the number of users of such a test. The ids from known on are in no file of the build.
const (
	population = 400
	known      = 250
)

func (l *amendedLists) file(users map[uint32]bool) string {
	var text bytes.Buffer
	for _, user := range slices.Sorted(maps.Keys(users)) {
		text.Write(append(spellings[l.kind](nil, user), '\n'))
	}
	name := filepath.Join(l.dir, fmt.Sprintf("%d.txt", l.rand.Uint64()))
	require.NoError(l.t, os.WriteFile(name, text.Bytes(), 0o600))
	return name
}

// work runs segmentbuild, which must succeed.
func (l *amendedLists) work(args ...string) {
	l.t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(l.t.Context(), args, strings.NewReader(""), &stdout, &stderr)
	require.Equal(l.t, int(terminal.Done), status, "%q: %s%s", args, stdout.String(), stderr.String())
}

// build publishes all lists to a location.
func (l *amendedLists) build(root string) {
	args := []string{"build", "--to", root, "--ids", l.kind, "--only-grows", "opted-out", "--force", "--reason", "test"}
	if !l.names {
		args = append(args, "--no-names")
	}
	for _, name := range amendedSegments {
		args = append(args, "--segment", name+"="+l.file(l.lists[name]))
	}
	for _, name := range amendedSets {
		args = append(args, "--set", name+"="+l.file(l.lists[name]))
	}
	l.work(args...)
}

// draw returns some users from first on.
func (l *amendedLists) draw(first, end uint32, percent int) map[uint32]bool {
	users := map[uint32]bool{}
	for user := first; user < end; user++ {
		if l.rand.IntN(100) < percent {
			users[user] = true
		}
	}
	return users
}

// amend changes one or two sets: it replaces them or adds to them, with known ids alone or with new ones.
func (l *amendedLists) amend() {
	add := l.rand.IntN(2) == 0
	args := []string{"amend", "--to", l.root, "--force", "--reason", "test"}
	if add {
		args = append(args, "--only-grows")
	}
	end := uint32(known)
	if l.rand.IntN(3) > 0 {
		end = population
	}
	for _, i := range l.rand.Perm(len(amendedSets))[:1+l.rand.IntN(2)] {
		name, users := amendedSets[i], l.draw(0, end, l.rand.IntN(40))
		args = append(args, "--set", name+"="+l.file(users))
		if add {
			maps.Copy(users, l.lists[name])
		}
		l.lists[name] = users
	}
	l.work(args...)
}

// load returns the generation that a service uses, which follows the location.
func (l *amendedLists) load() *segments.Snapshot {
	r := segments.NewRefresher(segments.RefresherConfig{Source: objects.NewDirectory(l.root),
		CacheDir: l.dir + "/cache"})
	require.NoError(l.t, r.Load(l.t.Context()))
	return r.Current()
}

// answer is what a generation says about a user.
type answer struct {
	Segment string
	Zone    string
	Sets    []string
}

// answers returns the answers about all users.
func (l *amendedLists) answers(s *segments.Snapshot) (list []answer) {
	users := make([]capping.UserID, population)
	for user := range users {
		image, err := s.IDs().Parse(spellings[l.kind](nil, uint32(user)))
		require.NoError(l.t, err)
		users[user] = capping.UserID(image)
	}
	numbers, codes, zones := make([]uint32, population), make([]uint8, population), make([]uint16, population)
	s.Numbers(users, numbers)
	s.Lookup(numbers, codes)
	s.LookupZones(numbers, zones)
	for user, number := range numbers {
		var a answer
		if codes[user] > 0 {
			a.Segment = s.Names()[codes[user]-1]
		}
		if zones[user] > 0 {
			a.Zone = s.Zones()[zones[user]-1].String()
		}
		for _, name := range amendedSets {
			if s.Set(name).Contains(number) {
				a.Sets = append(a.Sets, name)
			}
		}
		list = append(list, a)
	}
	return list
}

// compare compares the amended generation with a build of the same lists.
func (l *amendedLists) compare() {
	want := &amendedLists{t: l.t, rand: l.rand, kind: l.kind, names: l.names, dir: l.t.TempDir(),
		root: l.t.TempDir(), lists: l.lists}
	want.build(want.root)
	built, got := want.load(), l.load()
	require.Equal(l.t, want.answers(built), l.answers(got))
	require.Equal(l.t, built.HasNames(), got.HasNames())
}

// check compares the amended generation with the lists.
func (l *amendedLists) check() {
	got := l.load()
	for user, a := range l.answers(got) {
		for _, name := range amendedSets {
			require.Equal(l.t, l.lists[name][uint32(user)], slices.Contains(a.Sets, name), "user %d in %s", user, name)
		}
		for _, name := range amendedSegments {
			require.Equal(l.t, l.lists[name][uint32(user)], a.Segment == name, "user %d in %s", user, name)
		}
	}
	if !got.HasNames() {
		return
	}
	for _, name := range amendedSets {
		var ids []string
		for number := range got.Set(name).All() {
			text, err := got.Back(nil, number)
			require.NoError(l.t, err)
			ids = append(ids, string(text))
		}
		slices.Sort(ids)
		require.Equal(l.t, spelled(l.kind, slices.Collect(maps.Keys(l.lists[name]))...), ids, name)
	}
}

// TestAmendsAnswerLikeABuild makes random amends of every kind of ids, and compares every answer about every id with
// that of a build of the final lists.
func TestAmendsAnswerLikeABuild(t *testing.T) {
	t.Parallel()
	compareAmends(t, 6)
}

func compareAmends(t *testing.T, amends int) {
	for kind := range spellings {
		for _, names := range []bool{true, false} {
			if !names && kind != "uuid" && kind != "text" {
				continue // --no-names changes nothing
			}
			t.Run(fmt.Sprintf("%s, names %t", kind, names), func(t *testing.T) {
				t.Parallel()
				l := &amendedLists{t: t, rand: rand.New(rand.NewPCG(uint64(len(kind)), 25)), kind: kind,
					names: names, dir: t.TempDir(), root: t.TempDir(), lists: map[string]map[uint32]bool{}}
				l.lists["vip"] = l.draw(0, known, 20)
				l.lists["new"] = l.draw(0, known, 30)
				maps.DeleteFunc(l.lists["new"], func(user uint32, _ bool) bool { return l.lists["vip"][user] })
				for i, name := range amendedSets {
					l.lists[name] = l.draw(0, known, 10*i)
				}
				l.build(l.root)
				for range amends {
					l.amend()
					l.check()
				}
				l.compare()
				l.work("verify", "--all", "--at", l.root)
			})
		}
	}
}
