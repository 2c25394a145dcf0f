package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments"
)

// If a suppressed set (set of users who must not receive messages) without "max_age" is older than oldList, /v1/status
// reports a problem. The constant oldList is two days, because mailbox providers require that an unsubscribe takes
// effect within two days.
const oldList = 48 * time.Hour

// The method "guarded" returns the maximum percentage of users that each guarded set may lose from one segments
// generation (published version) to the next. The service rejects a new generation in which a guarded set has lost more
// than its maximum percentage.
func (s *Service) guarded() segments.Guarded { return config.Guarded(s.needs()) }

// listProblems describes suppressed sets (of users who must not receive messages) that have, or may soon have, fewer
// users than intended. The method listProblems also describes guarded sets whose loss of users in a segments generation
// (published version) the service could not check.
func (s *Service) listProblems(policy *capping.Policy) (list []string) {
	list = s.lists.nearlyFull()
	now := s.clock()
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, guard := range s.segments.Guards() {
		suppressed := suppression(policy, guard.Set)
		if suppressed == nil {
			continue
		}
		age := now.Sub(guard.AsOf)
		if guard.Users == 0 {
			add("suppress.%s: the set is empty, so it suppresses nobody", guard.Set)
		}
		if !guard.OnlyGrows {
			add("suppress.%s: users may leave the set in each build: declare the set only_grows in the build",
				guard.Set)
		}
		if guard.Overruled > 0 {
			add("suppress.%s: the build in use lacks users whom calls added before the as_of of the build, so it no "+
				"longer suppresses them (number of users: %d): unless they subscribed again, add them again, and use "+
				"the start time of the export as as_of", guard.Set, guard.Overruled)
		}
		switch {
		case suppressed.MaxAge > 0 && age > suppressed.MaxAge:
			add("suppress.%s: the set is %s old and max_age is %s: the sends that it suppresses are unavailable",
				guard.Set,
				ageText(age), capping.Span(suppressed.MaxAge))
		case suppressed.MaxAge == 0 && age > oldList:
			add("suppress.%s: the set is %s old, and no max_age limits its age", guard.Set, ageText(age))
		}
	}
	for _, text := range s.segments.Status().Unjudged {
		add("protected sets are in use without a comparison: %s", text)
	}
	return list
}

// LookAtLists returns warnings about suppressed sets (of users who must not receive messages) that are empty or that
// may lose users. If the location of the segments is not a readable directory, LookAtLists returns nil.
func LookAtLists(ctx context.Context, cfg *config.Config) (warnings []string) {
	if objects.IsURL(cfg.Segments.Source) {
		return nil
	}
	m, err := segments.ReadLiveManifest(ctx, objects.NewDirectory(cfg.Segments.Source))
	if err != nil {
		return nil // the command capper doctor reports the reason
	}
	return config.LooseLists(cfg.Policy, m)
}

// The function suppression returns the policy's rule that suppresses the users of a set, or nil when the policy has no
// such rule.
func suppression(policy *capping.Policy, set string) *capping.Suppression {
	for i := range policy.Suppress {
		if policy.Suppress[i].Set == set {
			return &policy.Suppress[i]
		}
	}
	return nil
}

// ageText formats an age for people, for example "51h" instead of "51h0m0s".
func ageText(age time.Duration) string {
	if age < time.Hour {
		return age.Round(time.Second).String()
	}
	return capping.Span(age.Round(time.Hour))
}

// reportLists logs the ages of suppressed sets when the service starts with segments from its local cache, because
// cached sets may be old.
func (s *Service) reportLists() {
	if s.segments.Status().Origin != segments.OriginCache {
		return
	}
	var ages []string
	for _, guard := range s.segments.Guards() {
		if suppression(s.needs(), guard.Set) != nil {
			ages = append(ages, fmt.Sprintf("%s is %s old", guard.Set, ageText(s.clock().Sub(guard.AsOf))))
		}
	}
	if len(ages) > 0 {
		s.logger.Warn("segments: suppressed sets come from the cache", "sets", strings.Join(ages, ", "))
	}
}

// guardedStatus adds the state of guarded sets and of users' time zones to the status.
func (s *Service) guardedStatus(to *api.SegmentsStatus, status *segments.Status) {
	policy, now := s.needs(), s.clock()
	old := policy.TooOld(s.lists.use(), now)
	for _, guard := range s.segments.Guards() {
		set := api.GuardedSet{Name: guard.Set, Users: guard.Users, OnlyGrows: guard.OnlyGrows,
			MayLosePercent: guard.MayLose,
			Left:           guard.Left.Last, LeftSinceStart: guard.Left.Total, AsOf: guard.AsOf,
			TooOld: slices.Contains(old, guard.Set)}
		if of := suppression(policy, guard.Set); of != nil {
			set.Suppressed, set.MaxAgeSeconds = true, of.MaxAge.Seconds()
		}
		to.Guarded = append(to.Guarded, set)
	}
	to.ComparedWith, to.Unjudged = status.ComparedWith, status.Unjudged
	if refusal := status.Refusal; refusal != nil {
		to.Refused = &api.RefusedGeneration{Generation: refusal.Generation, Since: refusal.Since,
			Reasons: refusal.Reasons(), Error: refusal.Err.Error()}
	}
	if policy.UsesZones() {
		users := s.segments.Current().Zoneless()
		to.ZonelessUsers = &users
	}
}

// lostZones returns an error if a new policy needs users' time zones, but the current segments generation has lost time
// zones of an earlier generation. Under the new policy, the service would use a wrong time zone for users whose time
// zone is lost.
func (s *Service) lostZones(policy, inForce *capping.Policy) error {
	lost := s.segments.LostZones()
	if len(lost) == 0 || !policy.UsesZones() || inForce.UsesZones() {
		return nil
	}
	return fmt.Errorf(
		"%w: a rule needs the time zones of users, but generation (published version) %s has lost set %s: "+
			"the configuration change waits for a generation that contains the set",
		config.ErrNotYet, s.segments.Current().Generation(), strings.Join(lost, ", "))
}

// listAges is a metric collector for the maximum ages of suppressed sets, and for the sets that are older than their
// maximum age.
type listAges struct {
	of     *Service
	most   *prometheus.Desc
	tooOld *prometheus.Desc
}

func newListAges(of *Service) *listAges {
	return &listAges{of: of,
		most: prometheus.NewDesc("capper_sets_max_age_seconds",
			"Configured maximum age of a set of suppressed users, in seconds. Absent for sets without max_age.",
			[]string{"set"}, nil),
		tooOld: prometheus.NewDesc("capper_sets_too_old",
			"1 while a set of suppressed users is older than its max_age; the set's channels then get no decisions.",
			[]string{"set"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (a *listAges) Describe(out chan<- *prometheus.Desc) {
	out <- a.most
	out <- a.tooOld
}

// Collect implements prometheus.Collector.
func (a *listAges) Collect(out chan<- prometheus.Metric) {
	policy := a.of.capper.Policy()
	old := policy.TooOld(a.of.lists.use(), a.of.clock())
	for i := range policy.Suppress {
		s := &policy.Suppress[i]
		if s.MaxAge == 0 {
			continue
		}
		value := 0.0
		if slices.Contains(old, s.Set) {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(a.most, prometheus.GaugeValue, s.MaxAge.Seconds(), s.Set)
		out <- prometheus.MustNewConstMetric(a.tooOld, prometheus.GaugeValue, value, s.Set)
	}
}
