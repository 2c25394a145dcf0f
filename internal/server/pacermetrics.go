package server

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/pacing"
)

// pacerMetrics counts granted, refused and returned permits, for each pacer of the current policy. A pacerMetrics is
// safe for concurrent use.
type pacerMetrics struct {
	policy func() *pacing.Policy
	clock  func() time.Time
	sole   bool // no other instance uses the store

	granted, refused, returned, failed, come *prometheus.CounterVec
	shared                                   *prometheus.CounterVec
	waits                                    *prometheus.HistogramVec
	queue, used, allowed                     *prometheus.GaugeVec

	mu       sync.Mutex
	followed *pacing.Policy
	standing map[string]*standing
}

// The type "standing" is the state of a pacer according to the latest API permit requests.
type standing struct {
	empty  time.Time // time of the newest granted slot
	shares []share   // one for each limit; a pacer with only a rate has one
	ahead  due
}

// A share is the used fraction of one limit of a pacer: permits in use divided by the maximum.
type share struct {
	used  float64
	until time.Time // time from which the limit no longer counts the used permits
}

// newPacers returns metrics for the pacers of the current policy. The argument "sole" is true if no other instance uses
// the store.
func newPacers(policy func() *pacing.Policy, clock func() time.Time, sole bool) *pacerMetrics {
	return &pacerMetrics{
		policy: policy, clock: clock, sole: sole,
		granted: byPacer("capper_permits_granted_total",
			"Permits to send that capper granted, counted at each pacer of the call; a repeated call counts once."),
		refused: byPacer("capper_permits_refused_total",
			"Permits that capper refused, counted at the pacer that limited the call; a repeated call counts once."),
		returned: byPacer("capper_permits_returned_total",
			"Unused permits that callers returned before the send time, counted at each pacer that can reuse them."),
		failed: byPacer("capper_permits_errors_total",
			"Calls for permits that failed because the store did not answer, counted at each pacer of the call."),
		come: byPacer("capper_permits_due_total",
			"Granted permits whose time to send has come, counted at each pacer of the call."),
		shared: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_share_permits_granted_total",
			Help: "Granted permits of pacers with shares (reserved parts of a pacer's rate), by pacer and share. " +
				"The label 'share' is empty for calls that name no share.",
		}, []string{"pacer", "share"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capper_permits_wait_seconds",
			Help:    "Seconds from a permit request to the send time of its last permit, by pacer (named rate limit).",
			Buckets: []float64{0, .1, .5, 1, 5, 10, 30, 60, 300, 1800, 3600, 21600},
		}, pacerLabel),
		queue: asOfNow("capper_pacer_queue_seconds",
			"Seconds until the send time of the last permit that the pacer granted, as far as this instance knows. "+
				"For a pacer with a queue per message or key: the longest queue."),
		used: asOfNow("capper_pacer_used_ratio",
			"Used fraction of the pacer's fullest limit at the latest call, including reserved permits; 1 means full. "+
				"For a pacer with a log per message or key: the highest fraction. For a pacer with only a rate: 1 "+
				"while the next permit must wait."),
		allowed: asOfNow("capper_pacer_allowed_per_second",
			"Maximum permits per second according to the pacer's rate and limits with windows of up to a minute. "+
				"Absent for pacers per message or key, and for pacers without a rate and without these limits."),
		standing: map[string]*standing{},
	}
}

var pacerLabel = []string{"pacer"}

func byPacer(name, help string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, pacerLabel)
}

func asOfNow(name, help string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, pacerLabel)
}

func (p *pacerMetrics) vectors() []prometheus.Collector {
	return []prometheus.Collector{p.granted, p.refused, p.returned, p.failed, p.come, p.shared, p.waits,
		p.queue, p.used, p.allowed}
}

// Describe sends the descriptions of the metrics to Prometheus.
func (p *pacerMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, v := range p.vectors() {
		v.Describe(to)
	}
}

// Collect sends the current metrics of the configured pacers to Prometheus.
func (p *pacerMetrics) Collect(to chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	now := p.clock()
	for name, s := range p.standing {
		p.queue.WithLabelValues(name).Set(max(0, s.empty.Sub(now).Seconds()))
		p.used.WithLabelValues(name).Set(s.used(now))
		p.come.WithLabelValues(name).Add(float64(s.ahead.take(now)))
	}
	for _, v := range p.vectors() {
		v.Collect(to)
	}
}

// The method follow creates counters with value 0 for newly configured pacers, and deletes the counters of pacers that
// are no longer configured.
func (p *pacerMetrics) follow() {
	policy := p.policy()
	if policy == p.followed {
		return
	}
	p.followShares(policy)
	p.followed = policy
	for name := range p.standing {
		if _, known := policy.Pacer(name); !known {
			p.drop(name)
		}
	}
	for i := range policy.Pacers {
		name := policy.Pacers[i].Name
		p.allowed.DeleteLabelValues(name)
		if allowed := policy.Pacers[i].PerSecond(); allowed > 0 {
			p.allowed.WithLabelValues(name).Set(allowed)
		}
		if p.standing[name] == nil {
			p.standing[name] = &standing{ahead: due{}}
			p.granted.WithLabelValues(name)
			p.refused.WithLabelValues(name)
			p.returned.WithLabelValues(name)
			p.failed.WithLabelValues(name)
			p.come.WithLabelValues(name)
			p.waits.WithLabelValues(name)
		}
	}
}

// followShares creates counters for newly configured client shares (reserved parts of a pacer's permits), and deletes
// the counters of shares that are no longer configured.
func (p *pacerMetrics) followShares(policy *pacing.Policy) {
	if p.followed != nil {
		for i := range p.followed.Pacers {
			before := &p.followed.Pacers[i]
			now, known := policy.Pacer(before.Name)
			for _, share := range before.Shares {
				if !known || !now.HasShare(share.Name) {
					p.shared.DeleteLabelValues(before.Name, share.Name)
				}
			}
			if !known || len(now.Shares) == 0 {
				p.shared.DeleteLabelValues(before.Name, "")
			}
		}
	}
	for i := range policy.Pacers {
		pacer := &policy.Pacers[i]
		for _, share := range pacer.Shares {
			p.shared.WithLabelValues(pacer.Name, share.Name)
			p.shared.WithLabelValues(pacer.Name, "")
		}
	}
}

// countShare counts the permits that a call got from one client share (reserved part) of a pacer. If the policy no
// longer has the share (reserved part of a pacer's permits), countShare ignores it.
func (p *pacerMetrics) countShare(pacer, share string, permits int) {
	if now, _ := p.followed.Pacer(pacer); len(now.Shares) > 0 && (share == "" || now.HasShare(share)) {
		p.shared.WithLabelValues(pacer, share).Add(float64(permits))
	}
}

func (p *pacerMetrics) drop(name string) {
	delete(p.standing, name)
	p.granted.DeleteLabelValues(name)
	p.refused.DeleteLabelValues(name)
	p.returned.DeleteLabelValues(name)
	p.failed.DeleteLabelValues(name)
	p.come.DeleteLabelValues(name)
	p.waits.DeleteLabelValues(name)
	p.queue.DeleteLabelValues(name)
	p.used.DeleteLabelValues(name)
	p.allowed.DeleteLabelValues(name)
}

// CountFailure counts a permit request that failed because the store did not respond. Each of the named pacers counts
// the failure once.
func (p *pacerMetrics) CountFailure(names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	for _, name := range names {
		if p.standing[name] != nil {
			p.failed.WithLabelValues(name).Inc()
		}
	}
}

// The method Count adds the permits of a response to the counters of the pacers. If a configuration change has removed
// a pacer during the call, Count ignores the pacer.
func (p *pacerMetrics) Count(given *pacing.Answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	now := p.clock()
	for i := range given.Pacers {
		pacer := &given.Pacers[i]
		s := p.standing[pacer.Name]
		if s == nil {
			continue
		}
		s.see(now, pacer, &given.States[i])
		if given.Fresh > 0 {
			p.granted.WithLabelValues(pacer.Name).Add(float64(given.Fresh))
			p.countShare(pacer.Name, given.Shares[i], given.Fresh)
			s.ahead.add(now, given.Runs, given.Fresh)
			last := &given.Runs[len(given.Runs)-1]
			p.waits.WithLabelValues(pacer.Name).Observe(max(0, last.WaitOf(last.Permits-1).Seconds()))
		}
		if given.Refused > 0 && i == given.Target && !given.Replayed {
			p.refused.WithLabelValues(pacer.Name).Add(float64(given.Refused))
		}
	}
}

// CountReturned counts permits that a client returned unused. The metric of permits whose slot (start time) has come
// will not include the returned permits.
func (p *pacerMetrics) CountReturned(back *pacing.Back) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	now := p.clock()
	for i := range back.Pacers {
		name := back.Pacers[i].Name
		if s := p.standing[name]; s != nil && back.Permits > 0 {
			p.returned.WithLabelValues(name).Add(float64(back.Targets[i]))
			s.ahead.remove(now, back.Runs, p.sole)
		}
	}
}

// The method See updates the metrics of a pacer from a state that the server has just read from the store.
func (p *pacerMetrics) See(standing *pacing.Standing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	if s := p.standing[standing.Name]; s != nil {
		s.see(p.clock(), standing.Pacer, &standing.State)
	}
}

// The method Forget resets the metrics about a pacer's state after an operator has deleted the pacer's log of granted
// permits.
func (p *pacerMetrics) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.standing[name]; s != nil {
		*s = standing{ahead: s.ahead}
	}
}

// see() updates the pacer state that the metrics show, from the response to a permit request. If a pacer has several
// logs of permits, see() keeps the highest values that still apply.
func (s *standing) see(now time.Time, p *pacing.Pacer, state *pacing.State) {
	if empty := now.Add(state.Queue); p.Per == pacing.PerPacer || s.empty.Before(empty) {
		s.empty = empty
	}
	shares := sharesOf(now, p, state)
	if p.Per != pacing.PerPacer && len(s.shares) == len(shares) {
		for i, before := range s.shares {
			if before.until.After(now) && before.used > shares[i].used {
				shares[i] = before
			}
		}
	}
	s.shares = shares
}

func sharesOf(now time.Time, p *pacing.Pacer, state *pacing.State) []share {
	if len(p.Limits) == 0 {
		return []share{{1, now.Add(state.Next)}}
	}
	shares := make([]share, len(p.Limits))
	for i, limit := range p.Limits {
		shares[i] = share{float64(state.Used[i]) / float64(limit.Max), now.Add(state.Queue + limit.Window)}
	}
	return shares
}

// The method "used" returns the highest used fraction among the limits of the pacer.
func (s *standing) used(now time.Time) (most float64) {
	for _, share := range s.shares {
		if share.until.After(now) {
			most = max(most, share.used)
		}
	}
	return most
}
