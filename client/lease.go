package client

import (
	"errors"
	"time"

	"capper/client/api"
)

// leaseFor is the duration of a lease of permits. A Pacer needs a lease only for permits whose slots (start times) are
// further in the future than leaseFor. If the sender dies, the service takes the permits of a lease back soon after the
// lease ends. While a caller waits, the Pacer extends the lease of the permits (the service takes permits with an ended
// lease back).
const leaseFor = 6 * time.Second

// The type "leasing" is the state of the lease (time limit for unused permits) that a Pacer has for the permits of one
// request.
type leasing struct {
	ends time.Time // zero: no lease has begun
	next time.Time // the earliest time of the next call that extends the lease
	call bool      // a call that extends the lease is running
}

// The method "lapsed" reports whether the service may have taken a permit back, because the lease (time limit for
// unused permits) ended before the permit's slot.
func (l *leasing) lapsed(now, slot time.Time) bool {
	return !l.ends.IsZero() && l.ends.Before(now) && l.ends.Before(slot)
}

// The method "due" returns the time of the next call that begins or extends the lease (time limit for unused permits).
// If the lease needs no call, the method "due" returns false. The argument "last" of the method "due" is the last slot
// (start time) of the permits that the request got.
func (l *leasing) due(now, last time.Time) (time.Time, bool) {
	switch {
	case l.call:
		return now, false
	case l.ends.IsZero():
		return l.next, last.After(now.Add(leaseFor))
	}
	return l.next, last.After(l.ends)
}

// The method "called" updates the lease after a successful or failed API call to begin or extend the lease. The
// duration of a lease counts from the first API call that may have begun the lease.
func (l *leasing) called(sent, now time.Time, err error) {
	var refused *Error
	switch {
	case err == nil:
		l.ends, l.next = sent.Add(leaseFor), sent.Add(leaseFor/3)
	case l.ends.IsZero() && !(errors.As(err, &refused) && refused.Status < 500):
		l.ends = sent.Add(leaseFor) // the service may have begun the lease
		fallthrough
	default:
		l.next = now.Add(leaseFor / 12)
	}
}

// lacksLeases reports whether the error comes from an earlier version of the service that does not support leases (time
// limits for unused permits).
func lacksLeases(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Field == "lease"
}

// While a caller waits, keepLeases begins and extends the leases (rights to use permits) of all requests with unused
// permits. keepLeases returns the time of the next API call for a lease, or false if no lease needs a call. The caller
// of keepLeases must hold the Pacer's lock.
func (p *Pacer) keepLeases(now time.Time) (next time.Time, ok bool) {
	if p.waiting.Len() == 0 || p.leaseless || p.idle != nil {
		return now, false
	}
	for request, last := range p.stock.lasts() {
		at, needed := request.lease.due(now, last)
		switch {
		case !needed:
		case at.After(now):
			if !ok || at.Before(next) {
				next, ok = at, true
			}
		default:
			request.lease.call = true
			go p.keepLease(request)
		}
	}
	return next, ok
}

// keepLease repeats a request for permits with a lease (time limit for unused permits), so that the service begins or
// extends the lease. If the response to the repeated request has fewer permits than before, the service has taken the
// missing permits back.
func (p *Pacer) keepLease(request *asking) {
	sent := time.Now()
	answer, err := p.repeat(request.PermitsRequest)
	p.mu.Lock()
	defer p.mu.Unlock()
	now, l := time.Now(), &request.lease
	l.call = false
	switch {
	case lacksLeases(err):
		p.leaseless = true
	case err == nil && (answer.Granted < request.granted || !answer.Replayed):
		p.stock.remove(request) // permits are gone, or new ones were taken
	default:
		l.called(sent, now, err)
	}
	p.act(now)
}

func (p *Pacer) repeat(request api.PermitsRequest) (answer api.Permits, err error) {
	request.Lease = api.Wait(leaseFor)
	err = p.send(p.life, leaseFor/2, &request, &answer)
	return answer, err
}
