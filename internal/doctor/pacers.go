package doctor

import (
	"context"
	"fmt"
	"math"

	"capper/internal/config"
	"capper/internal/pacing"
)

// permitsOfShard is the number of permits per second that one Redis master can grant, if each call requests one permit.
// The value of permitsOfShard is from the section "Pacing against others" of docs/benchmarks.md.
const permitsOfShard = 50_000

// The function "pacers" checks the total load of all pacers of a group, because one Redis master holds these pacers.
// Pacers with a separate limit for each message or key do not count, because the number of messages and keys is
// unknown.
func pacers(s *Subject) check {
	return check{Name: "pacers", Look: func(_ context.Context, n *notes) {
		all := s.Config.Pacers.Pacers
		if len(all) == 0 {
			n.Skip("", "no pacers are configured")
			return
		}
		sum := loadOf(all)
		if s.Config.Store.Kind == config.Redis && sum.busiest > permitsOfShard {
			n.Warn("",
				fmt.Sprintf("the pacers of one shard permit up to %.0f permits per second together", sum.busiest),
				"request permits in groups of a hundred, or give the pacers separate groups",
				fmt.Sprintf("with single requests, a shard grants about %d per second, and the same server also "+
					"decides its users", permitsOfShard))
			return
		}
		text := fmt.Sprintf("%d pacers permit up to %.0f permits per second together", sum.pacers, sum.all)
		if apart := len(all) - sum.pacers; apart > 0 {
			text += fmt.Sprintf("; pacers with a separate limit for each message or key: %d", apart)
		}
		n.OK("", "%s", text)
	}}
}

// A load is the number of permits per second that all pacers can grant together, except pacers with a log for each
// message or key.
type load struct {
	pacers       int     // number of these pacers
	all, busiest float64 // sum over all pacers, and over the pacers of the busiest group
}

func loadOf(pacers []pacing.Pacer) (l load) {
	groups := map[string]float64{}
	for i := range pacers {
		if p := &pacers[i]; p.Per == pacing.PerPacer {
			l.pacers++
			l.all += sustained(p)
			groups[p.Group] += sustained(p)
			l.busiest = max(l.busiest, groups[p.Group])
		}
	}
	return l
}

// The function "sustained" returns the number of permits per second that a pacer can grant over a long time.
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
