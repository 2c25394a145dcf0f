package journal

import (
	"slices"
	"sync"

	"capper/internal/audit"
	"capper/internal/capping"
)

// The constant "causes" is the number of possible causes of a denial in one segment: one for each pair of a reason and
// a rule.
const causes = 4 << 8

// These constants number the first bins (lists of users with the same outcome) of a sorter: one bin for each outcome
// other than a denial.
const (
	binAllowed = iota
	binReplayed
	binUnavailable
	outcomeBins
)

// A sorter sorts the users of a call into bins for the audit record of the call: one bin for each outcome and reason.
type sorter struct {
	bins    []bin
	used    int      // number of bins in use
	table   []uint16 // the bin plus 1, by segment code, reason and rule
	entries []int    // indexes of table entries that are not 0
	spare   []uint32 // memory for sorting
	dense   []uint32 // the users of a call with one outcome
	encoded []byte   // encoded users

	wide        bool             // ids are not dense: the sorter uses the next slices instead
	spareImages []capping.UserID // memory for sorting
	images      []capping.UserID // the users of a call with one outcome
}

// A bin collects the users of one group (same outcome and reason) of an audit record.
type bin struct {
	audit.Group
	users  []uint32
	images []capping.UserID // used instead if ids are not dense
}

// The method add adds a user to the bin.
func (b *bin) add(user capping.UserID, wide bool) {
	if wide {
		b.images = append(b.images, user)
	} else {
		b.users = append(b.users, capping.Dense(user))
	}
}

// The type "sorters" is a pool that keeps the memory of sorters for reuse.
type sorters struct {
	wide bool // set if ids are not dense
	pool sync.Pool
}

func (p *sorters) take() *sorter {
	if s, ok := p.pool.Get().(*sorter); ok {
		return s
	}
	return &sorter{wide: p.wide}
}

// groupsOf divides the users of a filter call into groups by their outcome. The caller of groupsOf must encode the
// returned groups before it returns the sorter to the pool.
func (s *sorter) groupsOf(d *capping.Decisions) []audit.Group {
	if outcome, ok := uniform(d.Verdicts); ok {
		g := audit.Group{Outcome: outcome}
		if s.wide {
			s.images = append(s.images[:0], d.Users...)
			s.encodeImages(&g, s.images)
		} else {
			s.dense = capping.AppendDense(s.dense[:0], d.Users)
			s.encode(&g, s.dense)
		}
		return []audit.Group{g}
	}
	s.begin(outcomeBins)
	s.bins[binAllowed].Outcome, s.bins[binReplayed].Outcome, s.bins[binUnavailable].Outcome = audit.Allowed,
		audit.Replayed, audit.Unavailable
	if need := (len(d.Names) + 1) * causes; len(s.table) < need {
		s.table = make([]uint16, need)
	}
	for i := range d.Verdicts {
		k := binUnavailable
		switch v := &d.Verdicts[i]; v.Outcome {
		case capping.Allowed:
			k = binAllowed
		case capping.Replayed:
			k = binReplayed
		case capping.Denied:
			at := int(d.Codes[i])*causes | int(v.By)<<8 | int(v.Rule)
			if k = int(s.table[at]) - 1; k < 0 {
				k = s.denied(d, i, at)
			}
		}
		s.bins[k].add(d.Users[i], s.wide)
	}
	return s.groups()
}

// The function uniform returns the common outcome of all users of a call. The second result of the function uniform is
// false if a user is denied, or if users have different outcomes.
func uniform(verdicts []capping.Verdict) (audit.Outcome, bool) {
	first := verdicts[0].Outcome
	for i := range verdicts {
		if verdicts[i].Outcome != first {
			return 0, false
		}
	}
	switch first {
	case capping.Allowed:
		return audit.Allowed, true
	case capping.Replayed:
		return audit.Replayed, true
	case capping.Unavailable:
		return audit.Unavailable, true
	}
	return 0, false
}

// The method "denied" returns the index of the bin for users who were denied for the same reason as the user with the
// index i. The method "denied" stores the bin in a table, so that the search is faster for further users.
func (s *sorter) denied(d *capping.Decisions, i, at int) int {
	g := audit.Group{Outcome: audit.Denied, By: d.Verdicts[i].By, Limit: d.DeniedBy(i), Set: d.Set(i)}
	k := slices.IndexFunc(s.bins[:s.used], func(b bin) bool {
		return b.Outcome == g.Outcome && b.By == g.By && b.Limit == g.Limit && b.Set == g.Set
	})
	if k < 0 {
		k = s.add(g)
	}
	s.table[at] = uint16(k + 1)
	s.entries = append(s.entries, at)
	return k
}

// groupsOfRelease divides the users of a release (removal of recorded sends) into groups by the result of the
// release.
func (s *sorter) groupsOfRelease(users []capping.UserID, results []capping.Released) []audit.Group {
	s.begin(3)
	s.bins[capping.ReleaseUnavailable].Outcome = audit.ReleaseUnavailable
	s.bins[capping.ReleaseDone].Outcome = audit.Released
	s.bins[capping.ReleaseAbsent].Outcome = audit.Absent
	for i, result := range results {
		s.bins[result].add(users[i], s.wide)
	}
	return s.groups()
}

func (s *sorter) begin(bins int) {
	for range bins {
		s.add(audit.Group{})
	}
}

func (s *sorter) add(g audit.Group) int {
	if s.used == len(s.bins) {
		s.bins = append(s.bins, bin{})
	}
	s.bins[s.used].Group = g
	s.used++
	return s.used - 1
}

// The method "groups" converts all bins with users (lists of users with the same outcome and reason) to groups of an
// audit record.
func (s *sorter) groups() (groups []audit.Group) {
	for i := range s.bins[:s.used] {
		b := &s.bins[i]
		switch {
		case len(b.images) > 0:
			s.encodeImages(&b.Group, b.images)
		case len(b.users) > 0:
			s.encode(&b.Group, b.users)
		default:
			continue
		}
		groups = append(groups, b.Group)
	}
	return groups
}

// The method encode encodes the users of a bin (list of users with the same outcome and reason) into the group g of a
// record. The method may sort the slice "users" in place.
func (s *sorter) encode(g *audit.Group, users []uint32) {
	if !ascending(users) {
		s.spare = sortIDs(users, s.spare)
	}
	s.encoded = g.SetSorted(users, s.encoded)
}

// encodeImages works like the method encode, for id images (64-bit hashes) instead of dense ids. Two ids with the same
// id image count as one user.
func (s *sorter) encodeImages(g *audit.Group, images []capping.UserID) {
	if !ascending(images) {
		s.spareImages = sortIDs(images, s.spareImages)
		images = slices.Compact(images)
	}
	s.encoded = g.SetSortedImages(images, s.encoded)
}

// The pool keeps a sorter only if its memory has space for at most as many 32-bit ids as the constant "most" says.
const most = 4 << 20

func (p *sorters) keep(s *sorter) {
	for _, at := range s.entries {
		s.table[at] = 0
	}
	s.entries = s.entries[:0]
	s.encoded = s.encoded[:0]
	kept := cap(s.spare) + cap(s.dense) + cap(s.encoded)/4 + 2*(cap(s.spareImages)+cap(s.images))
	for i := range s.bins[:s.used] {
		s.bins[i].Group = audit.Group{}
		s.bins[i].users = s.bins[i].users[:0]
		s.bins[i].images = s.bins[i].images[:0]
		kept += cap(s.bins[i].users) + 2*cap(s.bins[i].images)
	}
	s.used = 0
	if kept <= most {
		p.pool.Put(s)
	}
}
