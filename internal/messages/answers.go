package messages

import (
	"slices"

	"capper/internal/capping"
)

// maxConfigs is the maximum number of configuration versions in Answers.Configs. Answers leaves out further versions.
const maxConfigs = 100

// The method Add adds the counts in the argument "more" to the counts in the receiver. The method Add copies the
// numbers, and keeps no reference to the maps in the argument.
func (a *Answers) Add(more *Answers) {
	if more.Calls > 0 {
		a.called(more.Calls, more.First)
	}
	a.Last = max(a.Last, more.Last)
	a.Asked += more.Asked
	a.Allowed += more.Allowed
	a.Replayed += more.Replayed
	a.Unavailable += more.Unavailable
	addCounts(&a.Denied, more.Denied)
	addCounts(&a.Suppressed, more.Suppressed)
	addCounts(&a.Shadow, more.Shadow)
	for name, segment := range more.Segments {
		if a.Segments == nil {
			a.Segments = make(map[string]SegmentAnswers, len(more.Segments))
		}
		a.Segments[name] = a.Segments[name].plus(segment)
	}
	for _, version := range more.Configs {
		a.under(version)
	}
}

// AddCall counts one call at the given time with the given configuration version, but not the decisions of the call.
func (a *Answers) AddCall(at capping.Instant, config string) {
	a.called(1, at)
	a.Last = max(a.Last, at)
	a.under(config)
}

// The method "called" adds a number of calls about a message to the counts. The argument "first" is the time of the
// first of these calls.
func (a *Answers) called(calls int64, first capping.Instant) {
	if a.Calls == 0 || first < a.First {
		a.First = first
	}
	a.Calls += calls
}

func (a *Answers) under(config string) {
	if len(a.Configs) < maxConfigs && !slices.Contains(a.Configs, config) {
		a.Configs = append(a.Configs, config)
	}
}

func (s SegmentAnswers) plus(more SegmentAnswers) SegmentAnswers {
	return SegmentAnswers{s.Asked + more.Asked, s.Allowed + more.Allowed, s.Denied + more.Denied}
}

func addCounts(to *map[string]int64, more map[string]int64) {
	for name, n := range more {
		if *to == nil {
			*to = make(map[string]int64, len(more))
		}
		(*to)[name] += n
	}
}
