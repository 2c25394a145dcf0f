package server

import (
	"cmp"
	"slices"

	"capper/internal/capping"
)

// noSegment names, in answers and metrics, the users in no segment: they get
// the policy's default limits. No segment should bear this name; where one
// does, both are counted as one.
const noSegment = "default"

// segmentName is the name of a segment as callers see it.
func segmentName(segment string) string {
	if segment == "" {
		return noSegment
	}
	return segment
}

// denialTally counts the denials of one limit in one segment.
type denialTally struct {
	limit *capping.Limit // nil: it denied nobody
	users int
}

// segmentTally counts the users of one segment.
type segmentTally struct {
	requested, allowed, replayed, denied, unavailable int
}

// tally counts a call's decisions, in one pass.
type tally struct {
	segmentTally                 // of all
	byCode       []segmentTally  // by segment code
	denials      [][]denialTally // by segment code and rule
}

func tallyOf(d *capping.Decisions) *tally {
	t := &tally{byCode: make([]segmentTally, len(d.Names)+1), denials: make([][]denialTally, len(d.Names)+1)}
	for i, v := range d.Verdicts {
		code := d.Codes[i]
		s := &t.byCode[code]
		s.requested++
		switch v.Outcome {
		case capping.Allowed:
			s.allowed++
		case capping.Replayed:
			s.allowed++
			s.replayed++
		case capping.Denied:
			s.denied++
			t.deny(d, i)
		default:
			s.unavailable++
		}
	}
	for _, s := range t.byCode {
		t.requested += s.requested
		t.allowed += s.allowed
		t.replayed += s.replayed
		t.denied += s.denied
		t.unavailable += s.unavailable
	}
	return t
}

func (t *tally) deny(d *capping.Decisions, i int) {
	rows, rule := &t.denials[d.Codes[i]], int(d.Verdicts[i].Rule)
	for rule >= len(*rows) {
		*rows = append(*rows, denialTally{})
	}
	row := &(*rows)[rule]
	if row.limit == nil {
		row.limit = d.Limit(i)
	}
	row.users++
}

// count is a name and how many users it stands for.
type count struct {
	name  string
	users int
}

// byLimit is the denials by the name of the limit, over all segments, sorted
// by name.
func (t *tally) byLimit() []count {
	users := map[string]int{}
	for _, rows := range t.denials {
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
	segmentTally
}

// bySegment is the segments that had users in the call: in order of
// precedence, users in no segment last.
func (t *tally) bySegment(names []string) []segmentCount {
	var counts []segmentCount
	for code := 1; code < len(t.byCode); code++ {
		if t.byCode[code].requested > 0 {
			counts = append(counts, segmentCount{segmentName(names[code-1]), t.byCode[code]})
		}
	}
	none := t.byCode[0]
	if none.requested == 0 {
		return counts
	}
	for i := range counts {
		if c := &counts[i]; c.name == noSegment {
			c.requested += none.requested
			c.allowed += none.allowed
			return counts
		}
	}
	return append(counts, segmentCount{noSegment, none})
}
