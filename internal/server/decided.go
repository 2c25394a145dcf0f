package server

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/wire"
)

// The type "decided" counts the decided users by outcome, as Prometheus metrics. Every limit, set and rule of the
// current policy that can deny users has a counter, which starts at zero. When an operator removes a set or a shadow
// limit from the policy, the server deletes the counters of the set or limit. The type "decided" is safe for concurrent
// use.
type decided struct {
	policy func() *capping.Policy

	users, suppressed, shadow *prometheus.CounterVec

	mu       sync.Mutex
	followed *capping.Policy
	sets     []string
	limits   [][2]string // segment and shadow limit
}

func newDecided(policy func() *capping.Policy) *decided {
	return &decided{
		policy: policy,
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_users_total",
			Help: "Users in filter calls, by outcome, segment, and denying limit or rule; previews are not counted.",
		}, []string{"outcome", "segment", "limit"}),
		suppressed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_suppressed_users_total",
			Help: "Users denied because they are in a set of suppressed users, by set; previews are not counted.",
		}, []string{"set"}),
		shadow: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_shadow_denied_users_total",
			Help: "Allowed users whom a shadow limit (a limit on trial, which denies nobody) would have denied, " +
				"by segment and limit; previews are not counted.",
		}, []string{"segment", "limit"}),
	}
}

func (d *decided) vectors() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{d.users, d.suppressed, d.shadow}
}

// Describe sends the descriptions of the metrics to Prometheus.
func (d *decided) Describe(to chan<- *prometheus.Desc) {
	for _, v := range d.vectors() {
		v.Describe(to)
	}
}

// Collect sends the current values of all metrics to Prometheus.
func (d *decided) Collect(to chan<- prometheus.Metric) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.follow()
	for _, v := range d.vectors() {
		v.Collect(to)
	}
}

func (d *decided) follow() {
	policy := d.policy()
	if policy == d.followed {
		return
	}
	d.followed = policy
	d.expect(policy)
	sets, limits := setsOf(policy), shadowLimitsOf(policy)
	for _, set := range d.sets {
		if !slices.Contains(sets, set) {
			d.suppressed.DeleteLabelValues(set)
		}
	}
	for _, limit := range d.limits {
		if !slices.Contains(limits, limit) {
			d.shadow.DeleteLabelValues(limit[:]...)
		}
	}
	d.sets, d.limits = sets, limits
	for _, set := range sets {
		d.suppressed.WithLabelValues(set)
	}
	for _, limit := range limits {
		d.shadow.WithLabelValues(limit[:]...)
	}
}

func setsOf(policy *capping.Policy) (sets []string) {
	for i := range policy.Suppress {
		sets = append(sets, policy.Suppress[i].Set)
	}
	return sets
}

func shadowLimitsOf(policy *capping.Policy) (found [][2]string) {
	add := func(segment string, limits []capping.Limit) {
		for i := range limits {
			if limits[i].Shadow {
				found = append(found, [2]string{segment, limits[i].Name})
			}
		}
	}
	add(api.NoSegment, policy.Default)
	for segment, limits := range policy.Segments {
		add(wire.SegmentName(segment), limits)
	}
	return found
}

// The method count adds the users of a call to the metrics, by outcome. The argument "names" holds the names of the
// segments, because decisions refer to segments by number.
func (d *decided) count(sum *wire.Summary, names []string) {
	sum.EachSegment(names, func(outcome, segment, limit string, users int) {
		if users > 0 {
			d.users.WithLabelValues(outcome, segment, limit).Add(float64(users))
		}
	})
	sum.EachSet(func(set string, users int) { d.suppressed.WithLabelValues(set).Add(float64(users)) })
	sum.EachShadow(names, func(segment, limit string, users int) {
		d.shadow.WithLabelValues(segment, limit).Add(float64(users))
	})
}

// The method expect creates a counter with value 0 for each segment of the policy and each reason for denial. If a
// segment has no limits of its own, it gets a counter when its first user is decided.
func (d *decided) expect(p *capping.Policy) {
	withheld := withholding(p)
	d.expectSegment(api.NoSegment, p.Default, withheld)
	for segment, limits := range p.Segments {
		d.expectSegment(wire.SegmentName(segment), limits, withheld)
	}
}

// The function "withholding" returns the names of all reasons, other than limits, for which the policy can deny a user.
func withholding(p *capping.Policy) (names []string) {
	if len(p.Suppress) > 0 {
		names = append(names, api.LimitSuppressed)
	}
	if p.Holdout != nil {
		names = append(names, api.LimitHoldout)
	}
	if len(p.Quiet) > 0 {
		names = append(names, api.LimitQuiet)
	}
	return names
}

func (d *decided) expectSegment(segment string, limits []capping.Limit, withheld []string) {
	for _, outcome := range capping.Outcomes() {
		if outcome != capping.Denied {
			d.users.WithLabelValues(outcome.String(), segment, "")
		}
	}
	for _, name := range withheld {
		d.users.WithLabelValues(capping.Denied.String(), segment, name)
	}
	for i := range limits {
		if !limits[i].Shadow {
			d.users.WithLabelValues(capping.Denied.String(), segment, limits[i].Name)
		}
	}
}
