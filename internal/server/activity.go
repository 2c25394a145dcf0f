package server

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"capper/client/api"
	"capper/internal/messages"
	"capper/internal/server/wire"
)

// activityParameters lists the query parameters of GET /v1/activity.
var activityParameters = []string{"since", "until"}

// usualActivity and mostActivity are the default and the maximum period of GET /v1/activity. If an hour ended longer
// ago than the constant "settled", the service keeps the hour's counts in memory for the time in the constant "reused".
// The service does not keep the counts of an hour that ended more recently, because other instances may still add to
// them.
const (
	usualActivity = 24 * time.Hour
	mostActivity  = 31 * 24 * time.Hour
	settled       = 10 * time.Minute
	reused        = 10 * time.Minute
)

// The type Activities serves API calls for the hourly counts of decisions. The type Activities returns sums over the
// decisions of all service instances. An Activities is safe for concurrent use.
type Activities struct {
	counts counts // nil: the service counts no decisions
	clock  func() time.Time

	mu   sync.Mutex
	kept map[time.Time]keptHour
}

type keptHour struct {
	hour *api.ActivityHour // nil: the hour had no calls
	read time.Time
}

// The method activity serves GET /v1/activity.
func (s *Server) activity(c *call) error {
	ctx, cancel := s.callContext(c, 1)
	defer cancel()
	found, err := s.activities.Between(ctx, c.parameters)
	if err != nil {
		return err
	}
	return writeJSON(c.w, found)
}

// The method Between returns the hourly counts of decisions between the times in the query parameters "since" and
// "until".
func (a *Activities) Between(ctx context.Context, parameters map[string]string) (*api.Activity, error) {
	from, until, err := a.period(parameters)
	if err != nil || a.counts == nil {
		return nil, orNotCounted(err)
	}
	found := &api.Activity{Since: from, Until: until, Hours: []api.ActivityHour{}}
	for at := from; at.Before(until); at = at.Add(time.Hour) {
		hour, err := a.hour(ctx, at)
		if err != nil {
			return nil, wire.StoreFailure(ctx, err)
		}
		if hour != nil {
			found.Hours = append(found.Hours, *hour)
		}
	}
	return found, nil
}

// The method period returns the times in the query parameters "since" and "until", or their defaults. The returned
// beginning of the period is rounded down to a full hour.
func (a *Activities) period(parameters map[string]string) (from, until time.Time, err error) {
	now := a.clock().UTC()
	until, from = now, now.Add(-usualActivity)
	if text := parameters["until"]; text != "" {
		at, err := instantOf("until", text, now)
		if err != nil {
			return from, until, err
		}
		until = at.Time().UTC()
	}
	if text := parameters["since"]; text != "" {
		at, err := instantOf("since", text, now)
		if err != nil {
			return from, until, err
		}
		from = at.Time().UTC()
	}
	from = from.Truncate(time.Hour)
	switch {
	case from.After(until):
		return from, until, wire.Invalid("since", "%s is after until, which is %s", from.Format(time.RFC3339),
			until.Format(time.RFC3339))
	case until.Sub(from) > mostActivity+time.Hour:
		return from, until, wire.Invalid("since", "%s is more than 31 days before until, which is %s",
			from.Format(time.RFC3339), until.Format(time.RFC3339))
	}
	return from, until, nil
}

// The method hour returns the counts of decisions in the hour that begins at the given time. If the hour had no calls,
// the result is nil.
func (a *Activities) hour(ctx context.Context, at time.Time) (*api.ActivityHour, error) {
	now := a.clock()
	a.mu.Lock()
	kept, ok := a.kept[at]
	a.mu.Unlock()
	if ok && now.Sub(kept.read).Abs() < reused {
		return kept.hour, nil
	}
	found, err := a.counts.MessageCounts(ctx, messages.Activity(at))
	if err != nil {
		return nil, err
	}
	hour := hourOf(at, found)
	if now.Sub(at) > time.Hour+settled {
		a.keep(at, keptHour{hour, now})
	}
	return hour, nil
}

// The method keep stores the counts of a finished hour in memory, and deletes hours that were read 10 or more minutes
// ago.
func (a *Activities) keep(at time.Time, hour keptHour) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[time.Time]keptHour{}
	}
	maps.DeleteFunc(a.kept, func(_ time.Time, old keptHour) bool { return hour.read.Sub(old.read).Abs() >= reused })
	a.kept[at] = hour
}

// hourOf adds up the counts of decisions in an hour over all channels, or returns nil when the hour had no calls.
func hourOf(at time.Time, found []messages.Counts) *api.ActivityHour {
	sum := messages.Answers{}
	for i := range found {
		sum.Add(&found[i].Answers)
	}
	if sum.Calls == 0 {
		return nil
	}
	hour := &api.ActivityHour{At: at, Calls: sum.Calls, Asked: sum.Asked, Allowed: sum.Allowed - sum.Replayed,
		Replayed: sum.Replayed, Unavailable: sum.Unavailable, Denied: sum.Denied, Parts: []api.ActivityPart{}}
	if hour.Denied == nil {
		hour.Denied = map[string]int64{}
	}
	for _, name := range slices.Sorted(maps.Keys(sum.Segments)) {
		minute, err := strconv.Atoi(name)
		if err != nil {
			continue // a later version of capper may write other names
		}
		part := sum.Segments[name]
		hour.Parts = append(hour.Parts, api.ActivityPart{At: at.Add(time.Duration(minute) * time.Minute),
			Asked: part.Asked, Allowed: part.Allowed, Denied: part.Denied})
	}
	return hour
}
