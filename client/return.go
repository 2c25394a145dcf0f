package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"capper/client/api"
)

// ReturnPermits gives back permits that Permits granted and whose slots are ahead, so that other senders get them. The
// request is the one that took them. Nothing may be sent with permits that are given back, so the sender gives them up
// before the call, whatever its outcome. A second call with the same or a larger Used gives
// back nothing.
func (c *Client) ReturnPermits(ctx context.Context, r api.PermitsReturn) (*api.PermitsReturned, error) {
	answer := new(api.PermitsReturned)
	if err := c.call(ctx, "POST", "/v1/permits/return", &r, answer); err != nil {
		return nil, fmt.Errorf("give back permits of %s: %w", strings.Join(r.Pacers, ", "), err)
	}
	return answer, nil
}

// ErrPacerClosed is the error of a wait for a Pacer that is closed.
var ErrPacerClosed = errors.New("the pacer is closed")

// Close gives back the permits that the Pacer requested ahead and that nobody has used, as far as their slots are
// ahead, and returns their number. Running and later waits return ErrPacerClosed. Close waits for a call under way,
// which may still bring permits, and for the service, until ctx ends. After an error, permits may not have gone back.
// A second Close does nothing.
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

// shut ends all waits. It returns the channel that is closed when no call is under way, and whether the Pacer was open.
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

// ended closes the channel of a closed Pacer that has no call under way. The caller holds the lock.
func (p *Pacer) ended() {
	if p.idle != nil && p.fetching == nil {
		select {
		case <-p.idle:
		default:
			close(p.idle)
		}
	}
}

// leftover removes all permits from the stock and returns, by request, those that may be ahead. A request without an
// answer may have got all of its permits.
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
