package app

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/segments"
)

// require refuses a generation that lacks a set of the current policy. A message sent to a suppressed user cannot be
// recalled.
func (s *Service) require(m *segments.Manifest) error {
	var missing []string
	for _, name := range s.needs().Sets() {
		if !s.lists.isLive(name) &&
			!slices.ContainsFunc(m.Sets, func(set segments.Set) bool { return set.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return s.lists.missed(m, s.needs().Sets())
	}
	return fmt.Errorf("sets that the configuration requires are missing: %s", strings.Join(missing, ", "))
}

// needs returns the current policy. Before the capper exists, it returns the policy that the capper will have.
func (s *Service) needs() *capping.Policy {
	if s.capper == nil {
		return s.config.Policy
	}
	return s.capper.Policy()
}

// lacks returns the sets that a new policy needs, the current policy does not need, and the generation lacks; nil
// means none. A set that is already missing is no reason to refuse a reload, because the reload may solve the
// problem.
func (s *Service) lacks(next *config.Config, current *segments.Snapshot) error {
	policy, known := next.Policy, s.capper.Policy().Missing(s.lists.on(current))
	var faults []error
	for _, name := range policy.Missing(newLists(next).on(current)) {
		if slices.Contains(known, name) {
			continue
		}
		faults = append(faults, fmt.Errorf(
			"%s: generation %s lacks set %s%s: the configuration change waits for a generation with the set",
			keyOf(policy, name), current.Generation(), name, butSegment(current, name)))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", config.ErrNotYet, errors.Join(faults...))
}

// missingProblems describes the sets whose absence keeps the service from being ready, and suggests a remedy.
func (s *Service) missingProblems(policy *capping.Policy, current *segments.Snapshot) (list []string) {
	for _, name := range policy.Missing(s.lists.on(current)) {
		list = append(list, fmt.Sprintf("%s: generation %s has no set %s%s: the service is not ready",
			keyOf(policy, name), current.Generation(), name, butSegment(current, name)))
	}
	return list
}

// keyOf returns the configuration key that names a set.
func keyOf(policy *capping.Policy, set string) string {
	for i := range policy.Quiet {
		if slices.Contains(policy.Quiet[i].Sets, set) {
			return fmt.Sprintf("quiet[%d].sets", i)
		}
	}
	return "suppress." + set
}

// butSegment returns a hint when a segment has the name of the missing set.
func butSegment(current *segments.Snapshot, name string) string {
	if slices.Contains(current.Names(), name) {
		return " (the name is a segment there, but a set is required)"
	}
	return ""
}

// missingSets returns a metric of the number of sets that the service waits for.
func (s *Service) missingSets() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_segments_missing_sets",
		Help: "Number of sets that the configuration needs but capper does not have; capper is ready only at 0.",
	}, func() float64 {
		return float64(len(s.capper.Policy().Missing(s.lists.on(s.segments.Current()))))
	})
}

// reportMissing logs that the service stops or resumes sends because of missing sets.
func (s *Service) reportMissing(before, next *segments.Snapshot) {
	if s.capper == nil { // this runs again after the capper exists
		return
	}
	policy := s.capper.Policy()
	switch missing := policy.Missing(s.lists.on(next)); {
	case len(missing) > 0:
		s.logger.Error("not ready: the generation lacks required sets, and no user is allowed until they are "+
			"published",
			"generation", next.Generation(), "missing", strings.Join(missing, ", "))
	case before != nil && len(policy.Missing(s.lists.on(before))) > 0:
		s.logger.Info("the generation has every set that the configuration requires", "generation", next.Generation())
	}
}

// zoneless reports a policy that uses users' time zones when the generation has none.
func zoneless(policy *capping.Policy, current *segments.Snapshot) []string {
	if !policy.UsesZones() || len(current.Zones()) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("time zones of users are used, but generation %s has no set %s…: every user gets "+
		"the zone %s",
		current.Generation(), segments.ZonePrefix, cmp.Or(policy.Zone, time.UTC))}
}

// unbound describes configured audiences with names that the generation lacks, or that are ambiguous in it.
func unbound(named *audience.Named, current *segments.Snapshot) (list []string) {
	engine := audience.NewEngine(0)
	for _, name := range named.Names() {
		e, err := audience.Parse(name)
		if err == nil {
			e, err = e.With(named)
		}
		if err == nil {
			_, err = engine.Bind(e, current)
		}
		if err != nil {
			list = append(list, fmt.Sprintf("audiences.%s: %v", name, err))
		}
	}
	return list
}
