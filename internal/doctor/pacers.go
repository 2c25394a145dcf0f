package doctor

import (
	"context"
	"fmt"
	"math"

	"capper/internal/config"
	"capper/internal/pacing"
)

// permitsOfShard is the number of permits per second that one Redis master can grant, if each call requests one
// permit. The number of permits per second is from the section "Pacing against others" of docs/benchmarks.md.
const permitsOfShard = 50_000

// pacers checks the total load of all pacers, because one Redis master holds all pacers.
func pacers(s *Subject) check {
	return check{Name: "pacers", Look: func(_ context.Context, n *notes) {
		all := s.Config.Pacers.Pacers
		if len(all) == 0 {
			n.Skip("", "no pacers are configured")
			return
		}
		perSecond := 0.0
		for i := range all {
			perSecond += sustained(&all[i])
		}
		if s.Config.Store.Kind == config.Redis && perSecond > permitsOfShard {
			n.Warn("", fmt.Sprintf("%d pacers permit up to %.0f permits per second together, all on one shard",
				len(all),
				perSecond), "request permits in groups of a hundred",
				fmt.Sprintf("with single requests, a shard grants about %d per second, and the same server also "+
					"decides its users", permitsOfShard))
			return
		}
		n.OK("", "%d pacers permit up to %.0f permits per second together", len(all), perSecond)
	}}
}

// sustained returns the number of permits per second that a pacer can grant over a long time.
func sustained(p *pacing.Pacer) float64 {
	least := math.Inf(1)
	for _, l := range p.Limits {
		least = min(least, float64(l.Max)/l.Window.Seconds())
	}
	if p.Rate.Permits > 0 {
		least = min(least, float64(p.Rate.Permits)/p.Rate.Per.Seconds())
	}
	return least
}
