package wire

import (
	"cmp"
	"math/bits"
	"slices"

	"capper/client/api"
	"capper/internal/capping"
)

// SegmentName returns the name that responses show for a segment.
func SegmentName(segment string) string {
	return cmp.Or(segment, api.NoSegment)
}

// The type Counts holds the numbers of users of a call by outcome.
type Counts struct {
	Requested   int
	Allowed     int // includes Replayed
	Replayed    int
	Denied      int
	Unavailable int
}

func (c *Counts) add(more *Counts) {
	c.Requested += more.Requested
	c.Allowed += more.Allowed
	c.Replayed += more.Replayed
	c.Denied += more.Denied
	c.Unavailable += more.Unavailable
}

// denialCount holds the number of users of one segment whom one rule denied.
type denialCount struct {
	limit string // name in responses; "": the rule denied nobody
	set   string // name of the set that suppresses the users
	users int
}

// The constant "reasons" is the number of possible reasons for a denial (values of capping.Reason).
const reasons = int(capping.ByQuiet) + 1

// denialCounts holds the numbers of denied users of one segment. The first index of denialCounts is the reason for the
// denial. The second index of denialCounts is the number of the limit, suppression or quiet hours.
type denialCounts [reasons][]denialCount

// shadowCount holds the number of users of one segment whom one shadow limit (a limit on trial) would have denied.
type shadowCount struct {
	limit string // "": the limit would have denied nobody
	users int
}

// A Summary holds the numbers of users whom a call allowed, denied, or left without a decision, by segment, rule and
// set.
type Summary struct {
	Counts                  // over all segments
	byCode  []Counts        // by segment code
	denials []denialCounts  // by segment code
	shadows [][]shadowCount // by segment code and rule; nil: no shadow denials
}

// Summarize counts the decisions of a filter call in one pass over the users.
func Summarize(d *capping.Decisions) *Summary {
	s := &Summary{byCode: make([]Counts, len(d.Names)+1), denials: make([]denialCounts, len(d.Names)+1)}
	for i := range d.Verdicts {
		v := &d.Verdicts[i]
		c := &s.byCode[d.Codes[i]]
		c.Requested++
		switch v.Outcome {
		case capping.Allowed:
			c.Allowed++
			if v.Shadow != 0 {
				s.shadow(d, i)
			}
		case capping.Replayed:
			c.Allowed++
			c.Replayed++
		case capping.Denied:
			c.Denied++
			if rows := s.denials[d.Codes[i]][v.By]; int(v.Rule) < len(rows) && rows[v.Rule].users > 0 {
				rows[v.Rule].users++
			} else {
				s.deny(d, i)
			}
		default:
			c.Unavailable++
		}
	}
	for i := range s.byCode {
		s.add(&s.byCode[i])
	}
	return s
}

// The method deny begins to count the denials by a rule in a segment, at the first user of the segment whom the rule
// denies.
func (s *Summary) deny(d *capping.Decisions, i int) {
	v := &d.Verdicts[i]
	rows, rule := &s.denials[d.Codes[i]][v.By], int(v.Rule)
	for rule >= len(*rows) {
		*rows = append(*rows, denialCount{})
	}
	(*rows)[rule] = denialCount{limit: d.DeniedBy(i), set: d.Set(i), users: 1}
}

func (s *Summary) shadow(d *capping.Decisions, i int) {
	if s.shadows == nil {
		s.shadows = make([][]shadowCount, len(d.Names)+1)
	}
	limits, rows := d.ShadowLimits(i), &s.shadows[d.Codes[i]]
	if *rows == nil {
		*rows = make([]shadowCount, len(limits))
	}
	for set := d.Verdicts[i].Shadow; set != 0; set &= set - 1 {
		row := &(*rows)[bits.TrailingZeros32(set)]
		row.limit = limits[bits.TrailingZeros32(set)].Name
		row.users++
	}
}

// The method Each calls the argument "yield" (a function) once for each outcome, with the number of users with the
// outcome. The number of allowed users does not include replayed users, whose send an earlier call recorded.
func (c *Counts) Each(yield func(outcome string, users int)) {
	yield(capping.Allowed.String(), c.Allowed-c.Replayed)
	yield(capping.Replayed.String(), c.Replayed)
	yield(capping.Denied.String(), c.Denied)
	yield(capping.Unavailable.String(), c.Unavailable)
}

// EachSegment calls the argument "yield" (a function) with the number of users for each outcome of each segment.
// EachSegment splits the denied users by the name of the limit. For an outcome other than denied, EachSegment passes ""
// as the argument limit to yield. The argument "names" holds the segment names, because the decisions refer to segments
// by number.
func (s *Summary) EachSegment(names []string, yield func(outcome, segment, limit string, users int)) {
	for code := range s.byCode {
		segment := api.NoSegment
		if code > 0 {
			segment = SegmentName(names[code-1])
		}
		s.byCode[code].Each(func(outcome string, users int) {
			if outcome != capping.Denied.String() {
				yield(outcome, segment, "", users)
			}
		})
		for _, rows := range s.denials[code] {
			for _, row := range rows {
				if row.users > 0 {
					yield(capping.Denied.String(), segment, row.limit, row.users)
				}
			}
		}
	}
}

// EachSet calls the argument "yield" (a function) for each set of suppressed users, with the number of users who were
// denied because of the set.
func (s *Summary) EachSet(yield func(set string, users int)) {
	for code := range s.denials {
		for _, row := range s.denials[code][capping.BySuppression] {
			if row.users > 0 {
				yield(row.set, row.users)
			}
		}
	}
}

// EachShadow calls the argument "yield" (a function) with the number of users that each shadow limit (a limit on trial)
// would have denied, by segment. The argument "names" holds the segment names, because the decisions refer to segments
// by number.
func (s *Summary) EachShadow(names []string, yield func(segment, limit string, users int)) {
	for code, rows := range s.shadows {
		segment := api.NoSegment
		if code > 0 {
			segment = SegmentName(names[code-1])
		}
		for _, row := range rows {
			if row.users > 0 {
				yield(segment, row.limit, row.users)
			}
		}
	}
}

// A count is a name with a number of users.
type count struct {
	name  string
	users int
}

// byLimit returns the number of denied users for each limit over all segments, sorted by the name of the limit.
func (s *Summary) byLimit() []count {
	users := map[string]int{}
	s.eachDenial(func(limit string, n int) { users[limit] += n })
	return sorted(users)
}

// eachDenial calls the argument "yield" (a function) with the number of users that each limit denied, by segment.
func (s *Summary) eachDenial(yield func(limit string, users int)) {
	for code := range s.denials {
		for _, rows := range s.denials[code] {
			for _, row := range rows {
				if row.users > 0 {
					yield(row.limit, row.users)
				}
			}
		}
	}
}

// bySet returns the number of suppressed users for each set, sorted by the name of the set.
func (s *Summary) bySet() []count {
	users := map[string]int{}
	s.EachSet(func(set string, n int) { users[set] += n })
	return sorted(users)
}

// byShadow returns the number of users that each shadow limit (a limit on trial) would have denied, sorted by the name
// of the limit.
func (s *Summary) byShadow() []count {
	users := map[string]int{}
	for _, rows := range s.shadows {
		for _, row := range rows {
			if row.users > 0 {
				users[row.limit] += row.users
			}
		}
	}
	return sorted(users)
}

func sorted(users map[string]int) []count {
	counts := make([]count, 0, len(users))
	for name, n := range users {
		counts = append(counts, count{name, n})
	}
	slices.SortFunc(counts, func(a, b count) int { return cmp.Compare(a.name, b.name) })
	return counts
}

// segmentCount holds the numbers of users of one segment by the outcome of the call.
type segmentCount struct {
	name string
	Counts
}

// bySegment returns the counts of all segments with users in the call, in the order of precedence. Users without a
// segment come last.
func (s *Summary) bySegment(names []string) []segmentCount {
	var counts []segmentCount
	for code := 1; code < len(s.byCode); code++ {
		if s.byCode[code].Requested > 0 {
			counts = append(counts, segmentCount{SegmentName(names[code-1]), s.byCode[code]})
		}
	}
	none := s.byCode[0]
	if none.Requested == 0 {
		return counts
	}
	for i := range counts {
		if c := &counts[i]; c.name == api.NoSegment {
			c.Requested += none.Requested
			c.Allowed += none.Allowed
			return counts
		}
	}
	return append(counts, segmentCount{api.NoSegment, none})
}

// BySegment calls the argument "yield" (a function) with the counts of each segment that has users in the call, in the
// order of precedence. The users without a segment come last, with the segment name "". The argument "names" holds the
// segment names, because the decisions refer to segments by number.
func (s *Summary) BySegment(names []string, yield func(segment string, n Counts)) {
	for i := range s.byCode {
		code, segment := (i+1)%len(s.byCode), ""
		if code > 0 {
			segment = names[code-1]
		}
		if s.byCode[code].Requested > 0 {
			yield(segment, s.byCode[code])
		}
	}
}

// ByShadow calls the function "yield" with the number of users that each shadow limit (a limit on trial) would have
// denied, sorted by limit name.
func (s *Summary) ByShadow(yield func(limit string, users int)) {
	for _, c := range s.byShadow() {
		yield(c.name, c.users)
	}
}

// NewSummary returns the summary of a filter call without users.
func NewSummary() *api.Summary {
	return &api.Summary{Denied: map[string]int{}, Segments: map[string]api.SegmentSummary{}}
}

// SummaryOf converts the summary of a filter call to the type of package api. The argument "names" holds the segment
// names, because the decisions refer to segments by number.
func SummaryOf(s *Summary, names []string) *api.Summary {
	answer := NewSummary()
	answer.Requested, answer.Allowed = s.Requested, s.Allowed
	answer.Replayed, answer.Unavailable = s.Replayed, s.Unavailable
	for _, c := range s.byLimit() {
		answer.Denied[c.name] = c.users
	}
	for _, c := range s.bySegment(names) {
		answer.Segments[c.name] = api.SegmentSummary{Requested: c.Requested, Allowed: c.Allowed}
	}
	answer.Suppressed, answer.ShadowDenied = countsOf(s.bySet()), countsOf(s.byShadow())
	return answer
}

// countsOf converts a list of names with numbers of users to a map. For an empty list, countsOf returns nil.
func countsOf(counts []count) (answer map[string]int) {
	for _, c := range counts {
		if answer == nil {
			answer = map[string]int{}
		}
		answer[c.name] = c.users
	}
	return answer
}
