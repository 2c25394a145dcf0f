package server

import (
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// recordSpan is the period of a call to the store, for the audit: from the request to the store until the store's
// response.
type recordSpan struct{ From, To time.Time }

// The method call returns the audit record of an API call. The recorded call begins and ends on a whole millisecond,
// and its period contains the period of the call to the store.
func (s recordSpan) call(caller gate.Caller, message capping.Message, channel capping.Channel) *audit.Record {
	at := capping.InstantOf(s.From)
	return &audit.Record{
		At: at, Took: max(s.To.Sub(at.Time())+time.Millisecond-1, 0).Truncate(time.Millisecond),
		Message: message, Channel: channel, Client: caller.Client, Key: caller.Key,
	}
}

// Filter returns the audit record of a filter call.
func (s recordSpan) Filter(caller gate.Caller, send *capping.Send, r *wire.FilterRequest, d *capping.Decisions,
	sum *wire.Summary) *audit.Record {
	x := s.call(caller, send.Message, send.Channel)
	x.Exempt, x.Audience = !send.Enforce, expression(&r.Audience)
	sum.BySegment(d.Names, func(segment string, n wire.Counts) {
		x.Segments = append(x.Segments, audit.SegmentCount{
			Name: segment, Requested: n.Requested, Allowed: n.Allowed, Denied: n.Denied, Unavailable: n.Unavailable,
		})
	})
	sum.ByShadow(func(limit string, users int) { x.Shadow = append(x.Shadow, audit.Count{Name: limit, Users: users}) })
	return x
}

// The function expression returns the audience expression that selected the users of a call, or "" if the call listed
// its users.
func expression(a *wire.Audience) string {
	if a.Query == nil {
		return ""
	}
	return a.Query.Audience
}

// Release returns the audit record of a call that releases sends. The caller of Release adds the versions of the
// current configuration and segments to the audit record.
func (s recordSpan) Release(caller gate.Caller, message capping.Message, channel capping.Channel,
	a *wire.Audience) *audit.Record {
	x := s.call(caller, message, channel)
	x.Audience = expression(a)
	return x
}

// Permits returns the audit record of a permit request.
func (s recordSpan) Permits(
	caller gate.Caller, message capping.Message, r *wire.PermitsRequest, given *pacing.Answer, generation string,
) *audit.Record {
	x := s.call(caller, message, 0)
	x.Generation, x.Config = generation, given.Version
	x.Permits = &audit.Permits{Pacers: r.Pacers, Asked: r.Permits, Granted: given.Granted}
	if n := len(given.Runs); n > 0 {
		first, last := &given.Runs[0], &given.Runs[n-1]
		since := given.At.Sub(pacing.TimeOf(x.At.Time()))
		x.Permits.First, x.Permits.Last = since+first.WaitOf(0), since+last.WaitOf(last.Permits-1)
	}
	if given.Refused > 0 && given.Target >= 0 {
		x.Permits.Limited = given.Pacers[given.Target].Name
	}
	return x
}
