package answer

import (
	"cmp"
	"slices"

	"capper/client/api"
	"capper/internal/capping"
)

// SegmentName is the name of a segment as callers see it.
func SegmentName(segment string) string {
	if segment == "" {
		return api.NoSegment
	}
	return segment
}

// Counts are users by what was decided of them.
type Counts struct {
	Requested   int
	Allowed     int // Replayed included
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

// denialCount counts the denials of one limit in one segment.
type denialCount struct {
	limit *capping.Limit // nil: it denied nobody
	users int
}

// Summary counts a call's decisions.
type Summary struct {
	Counts                  // of all
	byCode  []Counts        // by segment code
	denials [][]denialCount // by segment code and rule
}

// Summarize counts the decisions, in one pass.
func Summarize(d *capping.Decisions) *Summary {
	s := &Summary{byCode: make([]Counts, len(d.Names)+1), denials: make([][]denialCount, len(d.Names)+1)}
	for i, v := range d.Verdicts {
		code := d.Codes[i]
		c := &s.byCode[code]
		c.Requested++
		switch v.Outcome {
		case capping.Allowed:
			c.Allowed++
		case capping.Replayed:
			c.Allowed++
			c.Replayed++
		case capping.Denied:
			c.Denied++
			s.deny(d, i)
		default:
			c.Unavailable++
		}
	}
	for i := range s.byCode {
		s.add(&s.byCode[i])
	}
	return s
}

func (s *Summary) deny(d *capping.Decisions, i int) {
	rows, rule := &s.denials[d.Codes[i]], int(d.Verdicts[i].Rule)
	for rule >= len(*rows) {
		*rows = append(*rows, denialCount{})
	}
	row := &(*rows)[rule]
	if row.limit == nil {
		row.limit = d.Limit(i)
	}
	row.users++
}

// Outcomes are the names of what can be decided of a user.
func Outcomes() []string { return []string{"allowed", "replayed", "denied", "unavailable"} }

// Each calls yield with the users of each outcome, each once: those replayed
// are not among the allowed.
func (c *Counts) Each(yield func(outcome string, users int)) {
	yield("allowed", c.Allowed-c.Replayed)
	yield("replayed", c.Replayed)
	yield("denied", c.Denied)
	yield("unavailable", c.Unavailable)
}

// EachSegment calls yield with the users of each outcome of each segment; those
// denied by the name of their limit, which is "" with other outcomes. names are
// those of the decisions.
func (s *Summary) EachSegment(names []string, yield func(outcome, segment, limit string, users int)) {
	for code := range s.byCode {
		segment := api.NoSegment
		if code > 0 {
			segment = SegmentName(names[code-1])
		}
		s.byCode[code].Each(func(outcome string, users int) {
			if outcome != "denied" {
				yield(outcome, segment, "", users)
			}
		})
		for _, row := range s.denials[code] {
			if row.limit != nil {
				yield("denied", segment, row.limit.Name, row.users)
			}
		}
	}
}

// count is a name and how many users it stands for.
type count struct {
	name  string
	users int
}

// byLimit is the denials by the name of the limit, over all segments, sorted
// by name.
func (s *Summary) byLimit() []count {
	users := map[string]int{}
	for _, rows := range s.denials {
		for _, row := range rows {
			if row.limit != nil {
				users[row.limit.Name] += row.users
			}
		}
	}
	counts := make([]count, 0, len(users))
	for name, n := range users {
		counts = append(counts, count{name, n})
	}
	slices.SortFunc(counts, func(a, b count) int { return cmp.Compare(a.name, b.name) })
	return counts
}

// segmentCount is what the summary says of one segment.
type segmentCount struct {
	name string
	Counts
}

// bySegment is the segments that had users in the call: in order of
// precedence, users in no segment last.
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
