package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"capper/client/api"
)

// ReturnPermits gives permits back that Permits granted and whose slots (start times) are in the future, so that other
// senders can use them. The argument r of ReturnPermits contains the request with which Permits got the permits. The
// caller of ReturnPermits must not send with the permits that it gives back, even if ReturnPermits returns an error. A
// second call of ReturnPermits gives permits back only if the field Used is smaller than in the first call.
func (c *Client) ReturnPermits(ctx context.Context, r api.PermitsReturn) (*api.PermitsReturned, error) {
	answer := new(api.PermitsReturned)
	if err := c.call(ctx, "POST", "/v1/permits/return", &r, answer); err != nil {
		return nil, fmt.Errorf("give back permits of %s: %w", strings.Join(r.Pacers, ", "), err)
	}
	return answer, nil
}

// ErrPacerClosed is the error for a caller that waits for permits of a Pacer that is closed.
var ErrPacerClosed = errors.New("the pacer is closed")

// The method Close finds the Pacer's unused permits whose slots (start times) are in the future, gives them back to the
// service, and returns their number. Callers that wait for permits of the Pacer, now or later, get the error
// ErrPacerClosed. The method Close waits for the response to a running request for permits, because the response may
// contain more permits. The method Close also waits for the service's response about the unused permits. When ctx ends,
// Close stops waiting. If Close returns an error, the service may still count permits that nobody used. A second Close
// has no effect.
func (p *Pacer) Close(ctx context.Context) (returned int, err error) {
	idle, first := p.shut()
	if !first {
		return 0, nil
	}
	select {
	case <-idle:
	case <-ctx.Done():
		return 0, fmt.Errorf("give back permits of %s: %w", strings.Join(p.cfg.Pacers, ", "), ctx.Err())
	}
	for request, left := range p.leftover() {
		answer, e := p.client.ReturnPermits(ctx, api.PermitsReturn{PermitsRequest: request.PermitsRequest,
			Used: request.granted - left})
		if err = errors.Join(err, e); e == nil {
			returned += answer.Returned
		}
	}
	return returned, err
}

// The method "shut" ends the waits of all callers. The first result of the method "shut" is a channel that is closed
// when no request for permits runs. The second result of the method "shut" says whether the Pacer was open.
func (p *Pacer) shut() (idle <-chan struct{}, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		return p.idle, false
	}
	p.idle = make(chan struct{})
	for e := p.waiting.Front(); e != nil; e = p.waiting.Front() {
		p.end(e, ErrPacerClosed)
	}
	p.timer.Stop()
	p.stop()
	p.ended()
	return p.idle, true
}

// The method "ended" closes the channel "idle" of a closed Pacer as soon as no request for permits runs any more. The
// caller of the method "ended" must hold the Pacer's lock.
func (p *Pacer) ended() {
	if p.idle != nil && p.fetching == nil {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

// The method "leftover" removes all unused permits from the Pacer. For each request that has a permit with a future
// slot (start time), "leftover" returns the number of its unused permits. The result also contains a request that has
// no response yet, because the service may have granted its permits.
func (p *Pacer) leftover() map[*asking]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.stock.ahead(time.Now())
	if p.open != nil {
		left[p.open] = 0
		p.open = nil
	}
	return left
}
