package campaign

import "slices"

// maxConfigs is how many versions of the configuration a campaign names, the first ones.
const maxConfigs = 100

// Add adds more answers. What is in the maps of more stays its caller's.
func (a *Answers) Add(more *Answers) {
	if more.Calls > 0 && (a.Calls == 0 || more.First < a.First) {
		a.First = more.First
	}
	a.Last = max(a.Last, more.Last)
	a.Calls += more.Calls
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
		if len(a.Configs) < maxConfigs && !slices.Contains(a.Configs, version) {
			a.Configs = append(a.Configs, version)
		}
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
