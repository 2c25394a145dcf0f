package wire

import (
	"cmp"
	"slices"

	"capper/internal/capping"
)

const millisPerHour = 60 * 60 * 1000

// A wave is a group of denied users who may all receive the message again within the same hour.
type wave struct {
	hour    int64           // hours since the instant 0
	readyAt capping.Instant // time at which the denials of all users have ended
	users   []capping.UserID
	places  []int // positions of users in the request; nil: dense ids as numbers
}

// wavesOf groups the denied users by the hour of their "retry_at" (time at which the denial ends). If the denial of a
// user has no "retry_at" (time at which the denial ends), the user is in no wave. In each wave, the users keep the
// order of the request. The waves are in ascending order of time.
func wavesOf(d *capping.Decisions, of []capping.UserID, listed bool) []*wave {
	byHour := map[int64]*wave{}
	last := &wave{hour: -1}
	var waves []*wave
	for i, v := range d.Verdicts {
		if v.Outcome != capping.Denied || v.FreesAt >= capping.Never {
			continue
		}
		if hour := int64(v.FreesAt) / millisPerHour; hour != last.hour {
			if byHour[hour] == nil {
				byHour[hour] = &wave{hour: hour}
				waves = append(waves, byHour[hour])
			}
			last = byHour[hour]
		}
		last.readyAt = max(last.readyAt, v.FreesAt)
		if !listed {
			last.users = append(last.users, of[i])
		} else {
			last.places = append(last.places, i)
		}
	}
	slices.SortFunc(waves, func(a, b *wave) int { return cmp.Compare(a.hour, b.hour) })
	return waves
}

func (a *answer) waves() {
	a.raw(`,"waves":[`)
	var instants instantWriter
	for i, w := range wavesOf(a.d, a.of, a.given != nil && a.form == InLists) {
		if i > 0 {
			a.raw(`,`)
		}
		from := capping.Instant(w.hour * millisPerHour).Time().Format(`{"from":"2006-01-02T15:04:05Z"`)
		a.raw(from).raw(`,"ready_at":`)
		a.out = instants.append(a.out, w.readyAt)
		switch {
		case a.form == InPacked:
			a.raw(`,"users_packed":`).bitmap(w.users)
		case a.form == InPositions:
			a.raw(`,"positions":`).bitmap(w.users)
		case a.form == InBitmaps:
			a.raw(`,"users_bitmap":`).bitmap(w.users)
		case a.given != nil:
			a.raw(`,"user_ids":`).names(w.places, a.d.Users)
		default:
			a.raw(`,"user_ids":`).list(w.users)
		}
		a.raw(`}`)
	}
	a.raw(`]`)
}
