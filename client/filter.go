package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// FilterRequest asks which users may get a send. Either Users or Bitmap is set.
type FilterRequest struct {
	MessageID string          // names the message, 1 to 128 bytes; may be "" with Preview
	Channel   string          // "": none. One id on two channels is two sends
	Users     []uint32        // sent as ids; repeats are decided once
	Bitmap    *roaring.Bitmap // sent as a bitmap: the answer is bitmaps too. It is read only

	Exempt  bool      // deny nobody, count the send all the same (enforce: false)
	Preview bool      // decide only, count nothing (record: false)
	At      time.Time // with Preview: decide as of this time; zero: now
	Counts  bool      // answer no list of the denied (detail: counts)
	Waves   bool      // answer the denied by the hour in which they become eligible
}

// FilterResult is the answer. With Users the slices are filled, with Bitmap the
// bitmaps.
type FilterResult struct {
	Allowed     []uint32 // may be sent to, in the order of the request
	Replayed    []uint32 // those of Allowed that an earlier call with the message id and channel had recorded
	Denied      []Denial
	Unavailable []uint32 // not decided: retry with the same message id

	AllowedBitmap     *roaring.Bitmap
	ReplayedBitmap    *roaring.Bitmap
	DeniedBitmaps     map[string]*roaring.Bitmap // by the name of the limit
	UnavailableBitmap *roaring.Bitmap

	Waves         []Wave
	Summary       Summary
	Generation    string // of the segments
	ConfigVersion string // of the limits
}

// Wave is the denied users who become eligible within one hour.
type Wave struct {
	From    time.Time // start of the hour
	ReadyAt time.Time // when all of them are eligible
	Users   []uint32
	Bitmap  *roaring.Bitmap
}

// Filter asks in one call, and asks again for users who are unavailable, up to
// Config.Attempts and unless Config.LeaveUnavailable. The result holds every user exactly once. With more users
// than the service takes in a call it is refused: see FilterAll.
func (c *Client) Filter(ctx context.Context, r *FilterRequest) (*FilterResult, error) {
	result, err := c.filterOnce(ctx, r)
	if err != nil {
		return nil, err
	}
	for attempt := 1; !c.cfg.LeaveUnavailable && result.Summary.Unavailable > 0 && attempt < c.cfg.Attempts; attempt++ {
		if c.wait(ctx, attempt, nil) != nil {
			return result, nil // what is left stays unavailable
		}
		rest := *r
		rest.Users, rest.Bitmap = result.Unavailable, result.UnavailableBitmap
		again, err := c.filterOnce(ctx, &rest)
		if err != nil {
			return result, nil
		}
		result.settle(again)
	}
	return result, nil
}

func (c *Client) filterOnce(ctx context.Context, r *FilterRequest) (*FilterResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	request := r.wire()
	if r.Bitmap != nil {
		var answer api.FilterBitmaps
		if err := c.call(ctx, "POST", "/v1/filter", request, &answer); err != nil {
			return nil, fmt.Errorf("filter %q: %w", r.MessageID, err)
		}
		return resultOfBitmaps(&answer), nil
	}
	var answer api.FilterIDs
	if err := c.call(ctx, "POST", "/v1/filter", request, &answer); err != nil {
		return nil, fmt.Errorf("filter %q: %w", r.MessageID, err)
	}
	return resultOfIDs(&answer), nil
}

func (r *FilterRequest) check() error {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return errors.New("filter: exactly one of Users and Bitmap must be set")
	}
	return nil
}

func (r *FilterRequest) wire() *api.FilterRequest {
	no := false
	w := &api.FilterRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users, Waves: r.Waves}
	if r.Bitmap != nil {
		w.UsersBitmap = &api.Bitmap{Bitmap: r.Bitmap}
	}
	if r.Exempt {
		w.Enforce = &no
	}
	if r.Preview {
		w.Record = &no
	}
	if r.Counts {
		w.Detail = api.DetailCounts
	}
	if !r.At.IsZero() {
		w.At = &r.At
	}
	return w
}

func resultOfIDs(a *api.FilterIDs) *FilterResult {
	r := &FilterResult{
		Allowed: a.Allowed, Replayed: a.Replayed, Denied: a.Denied, Unavailable: a.Unavailable,
		Summary: a.Summary, Generation: a.Generation, ConfigVersion: a.ConfigVersion,
	}
	for _, wave := range a.Waves {
		r.Waves = append(r.Waves, Wave{From: wave.From, ReadyAt: wave.ReadyAt, Users: wave.UserIDs})
	}
	return r
}

func resultOfBitmaps(a *api.FilterBitmaps) *FilterResult {
	r := &FilterResult{
		AllowedBitmap: a.AllowedBitmap.OrEmpty(), ReplayedBitmap: a.ReplayedBitmap.OrEmpty(),
		UnavailableBitmap: a.UnavailableBitmap.OrEmpty(), DeniedBitmaps: make(map[string]*roaring.Bitmap, len(a.DeniedBitmaps)),
		Summary: a.Summary, Generation: a.Generation, ConfigVersion: a.ConfigVersion,
	}
	for limit, users := range a.DeniedBitmaps {
		r.DeniedBitmaps[limit] = users.OrEmpty()
	}
	for _, wave := range a.Waves {
		r.Waves = append(r.Waves, Wave{From: wave.From, ReadyAt: wave.ReadyAt, Bitmap: wave.UsersBitmap.OrEmpty()})
	}
	return r
}
