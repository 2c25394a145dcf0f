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

// The method require returns an error for a published generation that lacks a set of the current policy. Without a
// required set of suppressed users, the service would allow sends to these users, and a sent message cannot be
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
	return fmt.Errorf("the published segments lack these sets, which the configuration requires: %s",
		strings.Join(missing, ", "))
}

// The method "needs" returns the policy whose sets the published segments generations must contain: the current policy
// or, during the start, the configured policy.
func (s *Service) needs() *capping.Policy {
	if s.capper == nil {
		return s.config.Policy
	}
	return s.capper.Policy()
}

// If the segments generation lacks sets that a new policy needs, the method "lacks" returns an error with the names of
// these sets. The error omits missing sets that the current policy also needs. A set that is already missing before a
// reload is no reason to reject the reload, because the reload may solve the problem.
func (s *Service) lacks(next *config.Config, current *segments.Snapshot) error {
	policy, known := next.Policy, s.capper.Policy().Missing(s.lists.on(current))
	var faults []error
	for _, name := range policy.Missing(newLists(next).on(current)) {
		if slices.Contains(known, name) {
			continue
		}
		faults = append(faults, fmt.Errorf(
			"%s: generation (published version) %s lacks set %s%s: "+
				"the configuration change waits for a generation that contains the set",
			keyOf(policy, name), current.Generation(), name, butSegment(current, name)))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", config.ErrNotYet, errors.Join(faults...))
}

// missingProblems describes, for the status, the missing sets that keep the service from being ready.
func (s *Service) missingProblems(policy *capping.Policy, current *segments.Snapshot) (list []string) {
	for _, name := range policy.Missing(s.lists.on(current)) {
		list = append(list, fmt.Sprintf("%s: generation %s has no set %s%s: the service is not ready",
			keyOf(policy, name), current.Generation(), name, butSegment(current, name)))
	}
	return list
}

// keyOf returns the configuration key that requires a set.
func keyOf(policy *capping.Policy, set string) string {
	for i := range policy.Quiet {
		if slices.Contains(policy.Quiet[i].Sets, set) {
			return fmt.Sprintf("quiet[%d].sets", i)
		}
	}
	return "suppress." + set
}

// If a segment has the given name, but no set has it, butSegment returns a hint for an error text.
func butSegment(current *segments.Snapshot, name string) string {
	if slices.Contains(current.Names(), name) {
		return " (the name is a segment there, but a set is required)"
	}
	return ""
}

// missingSets returns a metric with the number of sets that the policy requires and the service lacks.
func (s *Service) missingSets() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_segments_missing_sets",
		Help: "Number of sets of users that the configuration needs but capper lacks. " +
			"If the number is above 0, capper is not ready.",
	}, func() float64 {
		return float64(len(s.capper.Policy().Missing(s.lists.on(s.segments.Current()))))
	})
}

// reportMissing logs when the service begins to refuse sends because of missing sets, and when it allows sends again.
func (s *Service) reportMissing(before, next *segments.Snapshot) {
	if s.capper == nil { // newServer calls reportMissing again when s.capper exists
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

// The function "zoneless" describes a problem if the policy uses users' time zones, but the segments generation
// (published version) contains no time zones.
func zoneless(policy *capping.Policy, current *segments.Snapshot) []string {
	if !policy.UsesZones() || len(current.Zones()) > 0 {
		return nil
	}
	return []string{fmt.Sprintf("time zones of users are used, but generation %s has no set %s…: every user gets "+
		"the zone %s",
		current.Generation(), segments.ZonePrefix, cmp.Or(policy.Zone, time.UTC))}
}

// The function "unbound" describes configured audience expressions with names that are missing or ambiguous in the
// segments generation (published version).
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
