package wire

import (
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// ForecastRequest is the decoded body of POST /v1/forecast.
type ForecastRequest struct {
	Audience
	Channel string
	At      []string // at most api.MaxForecasts times
	Used    bool
}

// DecodeForecast strictly decodes the body of POST /v1/forecast. The caller of DecodeForecast must check the fields
// "channel" and "at", because this check needs the policy and the clock.
func DecodeForecast(body []byte, bounds Bounds) (*ForecastRequest, error) {
	d := newDecoder(body, bounds, api.ForecastRequest{})
	r := &ForecastRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "channel":
			r.Channel, err = d.sendChannel(name)
		case "user_ids", "users_bitmap", "users_packed":
			err = d.users(name)
		case "at":
			r.At, err = d.times()
		case "used":
			r.Used, err = d.boolean(name)
		default:
			err = d.queryOrUnknown(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.Audience, err = d.audience()
	return r, err
}

// The method "times" decodes a JSON array of times without checking the format of the times. The function ForecastTimes
// checks the format of each time.
func (d *decoder) times() (times []string, err error) {
	const field = "at"
	if !d.accept('[') {
		return nil, Invalid(field, "%s is not an array of times", d.value())
	}
	if d.accept(']') {
		return nil, Invalid(field, "must not be empty: leave the field out to decide for the current time")
	}
	for {
		if len(times) == api.MaxForecasts {
			return nil, Invalid(field, "at most %d times are allowed, got more", api.MaxForecasts)
		}
		at, err := d.id(timeField(len(times)), maxText)
		if err != nil {
			return nil, err
		}
		times = append(times, at)
		if d.accept(']') {
			return times, nil
		}
		if !d.accept(',') {
			return nil, d.syntax("',' or ']'")
		}
	}
}

func timeField(i int) string { return "at[" + strconv.Itoa(i) + "]" }

// ForecastTimes converts the requested times to instants. If the request contains no times, ForecastTimes returns the
// current instant.
func ForecastTimes(at []string, now time.Time) ([]capping.Instant, error) {
	current := capping.InstantOf(now)
	if len(at) == 0 {
		return []capping.Instant{current}, nil
	}
	times := make([]capping.Instant, len(at))
	for i, text := range at {
		instant, err := forecastAt(timeField(i), text, now)
		if err != nil {
			return nil, err
		}
		times[i] = max(instant, current)
	}
	return times, nil
}

// LimitUses converts counts of users to the type of package api. For each limit, the counts hold the number of users by
// the number of sends that count towards the limit.
func LimitUses(uses []capping.Use) []api.LimitUse {
	list := make([]api.LimitUse, len(uses))
	for i := range uses {
		use := &uses[i]
		list[i] = api.LimitUse{Segment: SegmentName(use.Segment), Limit: use.Limit.Name, Max: use.Limit.Max}
		for _, step := range use.Steps {
			list[i].Steps = append(list[i].Steps, api.UseStep(step))
		}
	}
	return list
}
