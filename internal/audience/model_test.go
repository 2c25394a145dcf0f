package audience_test

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// model is a naive generation, stored as lists, that serves as the oracle for audiences. It shares no
// code with them.
type model struct {
	segments []string // in order of precedence
	sets     []string
	users    map[string]members // as given: segments may overlap
	everyone []uint32           // all ids that are in anything, ascending
	in       map[string][]bool  // by name, of everyone
	segment  []string           // of everyone; "default": none
}

// members says of each id whether it is a member: by its upper half, and then by its lower half.
type members map[uint32]*[1 << 16]bool

func (m members) has(id uint32) bool {
	block := m[id>>16]
	return block != nil && block[id&0xffff]
}

func (m members) add(id uint32) {
	block := m[id>>16]
	if block == nil {
		block = new([1 << 16]bool)
		m[id>>16] = block
	}
	block[id&0xffff] = true
}

// all yields the members in ascending order.
func (m members) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for _, high := range slices.Sorted(maps.Keys(m)) {
			for low, is := range m[high] {
				if is && !yield(high<<16|uint32(low)) {
					return
				}
			}
		}
	}
}

// settle computes the segment and the sets of each user.
func (m *model) settle() {
	all := members{}
	for _, users := range m.users {
		for id := range users.all() {
			all.add(id)
		}
	}
	m.everyone = slices.Collect(all.all())
	m.in = map[string][]bool{}
	for _, name := range m.names() {
		m.in[name] = make([]bool, len(m.everyone))
	}
	for i, id := range m.everyone {
		segment := "default"
		for _, name := range slices.Backward(m.segments) {
			if m.users[name].has(id) {
				segment = name
			}
		}
		m.segment = append(m.segment, segment)
		m.in["all"][i], m.in[segment][i] = true, true
		for _, name := range m.sets {
			m.in[name][i] = m.users[name].has(id)
		}
	}
}

func (m *model) names() []string {
	return append(append([]string{"all", "default"}, m.segments...), m.sets...)
}

// sum is a parsed expression: products, each with a | or - before it.
type sum []summand

type summand struct {
	sign    byte // '|' or '-'; not looked at in the first
	factors []factor
}

// factor is a name, or a sum in parentheses.
type factor struct {
	name  string
	inner sum
}

// in reports of each user of everyone whether the audience has the user.
func (s sum) in(m *model) []bool {
	in := make([]bool, len(m.everyone))
	for i, part := range s {
		joins := i == 0 || part.sign == '|'
		for user, here := range part.in(m) {
			if here {
				in[user] = joins
			}
		}
	}
	return in
}

// in reports of each user of everyone whether all factors have the user.
func (s summand) in(m *model) []bool {
	in := slices.Repeat([]bool{true}, len(m.everyone))
	for _, f := range s.factors {
		of := m.in[f.name]
		if f.inner != nil {
			of = f.inner.in(m)
		}
		for user, has := range of {
			in[user] = in[user] && has
		}
	}
	return in
}

// text formats the sum, with random blanks where the language allows them.
func (s sum) text(r *rand.Rand) string {
	var b strings.Builder
	blank := func() { b.WriteString(strings.Repeat(" ", r.IntN(3))) }
	for i, part := range s {
		if i > 0 {
			if part.sign == '-' && !strings.HasSuffix(b.String(), ")") {
				b.WriteByte(' ')
			}
			blank()
			b.WriteByte(part.sign)
			blank()
		}
		for k, f := range part.factors {
			if k > 0 {
				blank()
				b.WriteByte('&')
				blank()
			}
			if f.inner != nil {
				b.WriteString("(" + f.inner.text(r) + ")")
			} else {
				b.WriteString(f.name)
			}
		}
	}
	return b.String()
}

// randomSum returns a random expression over the names.
func randomSum(r *rand.Rand, names []string, depth int) sum {
	var s sum
	for range 1 + r.IntN(3) {
		part := summand{sign: "|-"[r.IntN(2)]}
		for range 1 + r.IntN(2) {
			if depth > 0 && r.IntN(3) == 0 {
				part.factors = append(part.factors, factor{inner: randomSum(r, names, depth-1)})
			} else {
				part.factors = append(part.factors, factor{name: names[r.IntN(len(names))]})
			}
		}
		s = append(s, part)
	}
	return s
}

// newModel returns a model with random users in blocks of all kinds: full, nearly full, dense, sparse,
// runs and empty, at the beginning, in the middle and at the end of the id space.
func newModel(r *rand.Rand, segmentCount, setCount int) *model {
	m := &model{users: map[string]members{}}
	for i := range segmentCount {
		m.segments = append(m.segments, "s"+string(rune('a'+i)))
	}
	for i := range setCount {
		m.sets = append(m.sets, []string{"opted-out", "country/sg", "tz/Asia/Singapore", "a+b", "x.y_z", "plain"}[i])
	}
	for _, name := range slices.Concat(m.segments, m.sets) {
		m.users[name] = members{}
		for _, key := range []uint32{0, 1, 40_000, 65_535} {
			addBlock(r, m.users[name], key<<16)
		}
	}
	m.settle()
	return m
}

func addBlock(r *rand.Rand, users members, base uint32) {
	switch r.IntN(7) {
	case 0: // empty
	case 1: // full
		for low := range uint32(1 << 16) {
			users.add(base + low)
		}
	case 2: // few
		for range 1 + r.IntN(2000) {
			users.add(base + r.Uint32N(1<<16))
		}
	case 3: // a run that reaches an end
		for low := r.Uint32N(1 << 16); low < 1<<16; low++ {
			users.add(base + low)
		}
	case 4: // runs
		for low := uint32(0); low < 1<<16; low++ {
			if low>>9&3 == 1 {
				users.add(base + low)
			}
		}
	default: // many
		for range 20_000 {
			users.add(base + r.Uint32N(1<<16))
		}
	}
}

func bitmapOf(users members) *bitmap.Bitmap {
	s := new(bitmap.Set)
	for id := range users.all() {
		s.Add(id)
	}
	return s.Bitmap()
}

// snapshot returns the model as a snapshot.
func (m *model) snapshot(t testing.TB) *segments.Snapshot {
	t.Helper()
	g := &segments.Generation{}
	var list []segments.Segment
	for _, name := range m.segments {
		g.Bitmaps = append(g.Bitmaps, bitmapOf(m.users[name]))
		list = append(list, segments.Describe(name, g.Bitmaps[len(g.Bitmaps)-1]))
	}
	var sets []segments.Set
	for _, name := range m.sets {
		g.Sets = append(g.Sets, bitmapOf(m.users[name]))
		sets = append(sets, segments.Set{Segment: segments.Describe(name, g.Sets[len(g.Sets)-1])})
	}
	manifest, err := segments.NewManifest(segmentstest.Epoch, "test", "", list, sets...)
	require.NoError(t, err)
	g.Manifest = manifest
	return g.Snapshot()
}

// of returns the users of an expression, as indexes into everyone.
func (m *model) of(s sum) []int {
	list := []int{}
	for user, in := range s.in(m) {
		if in {
			list = append(list, user)
		}
	}
	return list
}

func (m *model) ids(users []int) []uint32 {
	list := make([]uint32, len(users))
	for i, user := range users {
		list[i] = m.everyone[user]
	}
	return list
}
