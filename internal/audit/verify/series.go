package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"capper/internal/audit"
	"capper/internal/audit/archive"
)

// series is the files of each instance, which follow each other.
type series struct {
	rolled map[string][]audit.Entry
	open   map[string][]audit.Entry
}

func newSeries() *series {
	return &series{map[string][]audit.Entry{}, map[string][]audit.Entry{}}
}

func (s *series) add(e *archive.Entry) { s.rolled[e.Instance] = append(s.rolled[e.Instance], e.Entry) }

func (s *series) addOpen(e audit.Entry) { s.open[e.Instance] = append(s.open[e.Instance], e) }

// replaced reports whether a compaction wrote a file anew under another name, or took it away
// as too old.
func (s *series) replaced(h audit.Header) bool {
	files := slices.Concat(s.rolled[h.Instance], s.open[h.Instance])
	if len(files) == 0 {
		return false
	}
	first := slices.MinFunc(files, func(a, b audit.Entry) int { return cmp.Compare(a.Number, b.Number) })
	return h.Number < first.Number || slices.ContainsFunc(files, func(e audit.Entry) bool { return e.Number == h.Number })
}

// report finds what is missing between the files of each instance. Before its first one
// nothing can be missed: retention takes the oldest away.
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
		if first := files[0]; first.Number > 1 {
			to.note("files 1 to %d of instance %s are not there: taken away with what is older, or lost", first.Number-1, instance)
		} else if first.FirstSequence != 1 {
			to.find(Finding{Kind: Gap, Instance: instance, Text: fmt.Sprintf("the first file of instance %s begins with record %d", instance, first.FirstSequence)})
		}
		for i := 1; i < len(files); i++ {
			follow(&files[i-1], &files[i], to)
		}
	}
}

// follow finds what is missing between two files that stand side by side.
func follow(a, b *audit.Entry, to *Report) {
	between := ""
	switch {
	case b.Number > a.Number+1:
		between = fmt.Sprintf("files %d to %d of instance %s are not there", a.Number+1, b.Number-1, a.Instance)
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
		Text: fmt.Sprintf("file %d of instance %s ends with record %d, and file %d begins with %d", a.Number, a.Instance, a.LastSequence, b.Number, b.FirstSequence)}
	if b.FirstSequence > a.LastSequence {
		f.Records = b.FirstSequence - a.LastSequence - 1
	}
	to.find(f)
}
