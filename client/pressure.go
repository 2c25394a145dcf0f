package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"capper/client/api"
)

// PressureQuery selects the messages and the weeks that the method Pressure counts. The zero PressureQuery selects all
// messages of the last 5 weeks.
type PressureQuery struct {
	Weeks     int       // 0: 5
	Until     time.Time // end of the latest week; zero: now
	Channel   string    // "": all
	Namespace string    // "": all
	Max       int       // maximum number of campaigns; 0: 20
	// AtLimit asks for a list of the users of a segment to whom a limit would deny the next message.
	AtLimit *PressureAtLimit
}

// PressureAtLimit selects the users of a segment who have reached a limit, so that the limit would deny them the next
// message.
type PressureAtLimit struct {
	Segment string // api.NoSegment: users in no segment
	Limit   string // "": any limit
}

// The method Pressure returns the number of messages per person, and the number of users who may receive no further
// message now. The method Pressure also returns the campaigns that used up the limits of users who may receive no
// further message. The method Pressure needs a service that keeps an audit (a record of its decisions). A call of
// Pressure may take seconds, and the service serves only one such call of an API key at a time.
func (c *Client) Pressure(ctx context.Context, q PressureQuery) (*api.Pressure, error) {
	parameters := url.Values{}
	if q.Weeks > 0 {
		parameters.Set("weeks", strconv.Itoa(q.Weeks))
	}
	if !q.Until.IsZero() {
		parameters.Set("until", q.Until.UTC().Format(time.RFC3339Nano))
	}
	if q.Channel != "" {
		parameters.Set("channel", q.Channel)
	}
	if q.Namespace != "" {
		parameters.Set("namespace", q.Namespace)
	}
	if q.Max > 0 {
		parameters.Set("max", strconv.Itoa(q.Max))
	}
	if q.AtLimit != nil {
		parameters.Set("segment", q.AtLimit.Segment)
		if q.AtLimit.Limit != "" {
			parameters.Set("limit", q.AtLimit.Limit)
		}
	}
	return read[api.Pressure](ctx, c, "/v1/pressure?"+parameters.Encode())
}
