package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
)

// The type "series" holds the audit files of each instance. The numbers of an instance's files must have no gaps.
type series struct {
	rolled  map[string][]audit.Entry
	open    map[string][]audit.Entry
	dropped *archive.Dropped
}

func newSeries(dropped *archive.Dropped) *series {
	return &series{map[string][]audit.Entry{}, map[string][]audit.Entry{}, dropped}
}

func (s *series) add(e *archive.Entry) { s.rolled[e.Instance] = append(s.rolled[e.Instance], e.Entry) }

func (s *series) addOpen(e audit.Entry) { s.open[e.Instance] = append(s.open[e.Instance], e) }

// The method "replaced" reports whether a compaction rewrote the audit file under another name, or removed the file
// because of its age.
func (s *series) replaced(h audit.Header) bool {
	files := slices.Concat(s.rolled[h.Instance], s.open[h.Instance])
	return h.Number <= s.dropped.Through(h.Instance) ||
		slices.ContainsFunc(files, func(e audit.Entry) bool { return e.Number == h.Number })
}

// The method report reports the missing audit files of each instance, between two existing files or before the first
// existing file. The method omits files that a compaction removed.
func (s *series) report(to *Report) {
	instances := maps.Clone(s.rolled)
	maps.Copy(instances, s.open)
	for _, instance := range slices.Sorted(maps.Keys(instances)) {
		files := slices.Clone(s.rolled[instance])
		for _, open := range s.open[instance] {
			if !slices.ContainsFunc(files, func(e audit.Entry) bool { return e.Number == open.Number }) {
				files = append(files, open)
			}
		}
		slices.SortFunc(files, func(a, b audit.Entry) int { return cmp.Compare(a.Number, b.Number) })
		s.begins(&files[0], to)
		for i := 1; i < len(files); i++ {
			follow(&files[i-1], &files[i], to)
		}
	}
}

// The method "begins" reports the audit files that are missing before the first existing file of an instance.
func (s *series) begins(first *audit.Entry, to *Report) {
	dropped := s.dropped.Through(first.Instance)
	switch {
	case first.Number == 1 && first.FirstSequence != 1:
		to.find(Finding{Kind: Gap, Instance: first.Instance,
			Text: fmt.Sprintf("the first file of instance %s begins with record %d", first.Instance,
				first.FirstSequence)})
	case first.Number == 1:
	case dropped >= first.Number-1:
		to.note("files 1 to %d of instance %s were removed by a compaction", first.Number-1,
			first.Instance)
	case !s.dropped.Noted:
		to.note("files 1 to %d of instance %s are missing: removed because of their age, or lost", first.Number-1,
			first.Instance)
	default:
		to.find(Finding{Kind: Missing, Instance: first.Instance, At: first.First,
			Text: fmt.Sprintf("files %d to %d of instance %s are missing, and no compaction removed them",
				dropped+1, first.Number-1, first.Instance)})
	}
}

// The function follow reports the audit files and records that are missing between two neighbouring files of an
// instance.
func follow(a, b *audit.Entry, to *Report) {
	between := ""
	switch {
	case b.Number > a.Number+1:
		between = fmt.Sprintf("files %d to %d of instance %s are missing", a.Number+1, b.Number-1, a.Instance)
	case b.Number == a.Number:
		between = fmt.Sprintf("two files of instance %s have the number %d", a.Instance, a.Number)
	}
	if between != "" {
		to.find(Finding{Kind: Missing, Instance: a.Instance, Key: b.Key, At: a.Last, Text: between})
	}
	if b.FirstSequence == a.LastSequence+1 {
		return
	}
	f := Finding{Kind: Gap, Instance: a.Instance, Sequence: a.LastSequence + 1, At: a.Last,
		Text: fmt.Sprintf("file %d of instance %s ends with record %d, but file %d begins with record %d", a.Number,
			a.Instance, a.LastSequence, b.Number, b.FirstSequence)}
	if b.FirstSequence > a.LastSequence {
		f.Records = b.FirstSequence - a.LastSequence - 1
	}
	to.find(f)
}
