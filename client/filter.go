package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// FilterRequest asks which users may receive a send. Exactly one of Users, Bitmap and Audience must be set.
type FilterRequest struct {
	MessageID string          // names the message, 1 to 128 bytes; may be "" with Preview
	Channel   string          // "": none. The same id on two channels stands for two sends
	Users     []uint32        // sent as ids; repeated ids are decided once
	Bitmap    *roaring.Bitmap // sent as a bitmap, and answered with bitmaps. It is not modified
	Audience  *Audience       // selected by the service, and answered with bitmaps. For one call, except in FilterAll

	Exempt  bool      // deny nobody, but record the sends (enforce: false)
	Preview bool      // only decide, record nothing (record: false)
	At      time.Time // with Preview: the time for which to decide; zero: now
	Counts  bool      // leave out the list of denied users (detail: counts)
	Waves   bool      // group the denied users by the hour in which they become eligible
}

// FilterResult is the answer to a filter call. A request with Users fills the slices; one with Bitmap or Audience
// fills the bitmaps.
type FilterResult struct {
	Allowed     []uint32 // users who may receive the send, in the order of the request
	Replayed    []uint32 // allowed users whose send an earlier call with the message id and channel had recorded
	Denied      []api.Denial
	Unavailable []uint32 // undecided users: retry with the same message id

	AllowedBitmap  *roaring.Bitmap
	ReplayedBitmap *roaring.Bitmap
	// by the name of the limit, or LimitSuppressed, LimitHoldout, LimitQuiet
	DeniedBitmaps     map[string]*roaring.Bitmap
	UnavailableBitmap *roaring.Bitmap

	Audience *api.AudienceTaken // with an Audience: its users, its generation and the cursor of the next call

	Waves         []Wave
	Summary       api.Summary
	Generation    string // generation of the segments that decided
	ConfigVersion string // version of the configuration that decided
}

// Wave is a group of denied users who become eligible within the same hour.
type Wave struct {
	From    time.Time // start of the hour
	ReadyAt time.Time // time from which all of them are eligible
	Users   []uint32
	Bitmap  *roaring.Bitmap
}

// Filter makes one filter call. Filter retries unavailable users, up to Config.Attempts times, unless
// Config.LeaveUnavailable is set. The result holds every user exactly once. The service refuses a call with too many
// users; use FilterAll instead.
func (c *Client) Filter(ctx context.Context, r *FilterRequest) (*FilterResult, error) {
	result, err := c.filterOnce(ctx, r)
	if err != nil {
		return nil, err
	}
	for attempt := 1; !c.cfg.LeaveUnavailable && result.Summary.Unavailable > 0 && attempt < c.cfg.Attempts; attempt++ {
		if c.wait(ctx, attempt, nil) != nil {
			return result, nil // the remaining users stay unavailable
		}
		rest := *r
		rest.Users, rest.Bitmap, rest.Audience = result.Unavailable, result.UnavailableBitmap, nil
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
	if len(r.Users) == 0 {
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
	if !exactlyOne(r.Users, r.Bitmap, r.Audience) {
		return errors.New("filter: exactly one of Users, Bitmap and Audience must be set")
	}
	return nil
}

// exactlyOne reports whether a request gives its users in exactly one way.
func exactlyOne(users []uint32, bitmap *roaring.Bitmap, audience *Audience) bool {
	ways := 0
	for _, given := range []bool{len(users) > 0, bitmap != nil, audience != nil} {
		if given {
			ways++
		}
	}
	return ways == 1
}

func (r *FilterRequest) wire() *api.FilterRequest {
	no := false
	w := &api.FilterRequest{MessageID: r.MessageID, Channel: r.Channel, UserIDs: r.Users,
		AudienceQuery: r.Audience.query(), Waves: r.Waves}
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
		UnavailableBitmap: a.UnavailableBitmap.OrEmpty(), DeniedBitmaps: roaringOf(a.DeniedBitmaps),
		Audience: a.Audience, Summary: a.Summary, Generation: a.Generation, ConfigVersion: a.ConfigVersion,
	}
	for _, wave := range a.Waves {
		r.Waves = append(r.Waves, Wave{From: wave.From, ReadyAt: wave.ReadyAt, Bitmap: wave.UsersBitmap.OrEmpty()})
	}
	return r
}

func roaringOf(bitmaps map[string]api.Bitmap) map[string]*roaring.Bitmap {
	users := make(map[string]*roaring.Bitmap, len(bitmaps))
	for name, bitmap := range bitmaps {
		users[name] = bitmap.OrEmpty()
	}
	return users
}

// settle moves the unavailable users of r to the decisions of a later call.
func (r *FilterResult) settle(again *FilterResult) {
	r.Allowed = append(r.Allowed, again.Allowed...)
	r.Replayed = append(r.Replayed, again.Replayed...)
	r.Denied = append(r.Denied, again.Denied...)
	r.Unavailable = again.Unavailable
	if r.AllowedBitmap != nil {
		r.AllowedBitmap.Or(again.AllowedBitmap)
		r.ReplayedBitmap.Or(again.ReplayedBitmap)
		r.UnavailableBitmap = again.UnavailableBitmap
		for limit, users := range again.DeniedBitmaps {
			r.DeniedBitmaps[limit] = union(r.DeniedBitmaps[limit], users)
		}
	}
	for _, wave := range again.Waves {
		r.addWave(wave)
	}
	settleSummary(&r.Summary, &again.Summary)
	r.Generation, r.ConfigVersion = again.Generation, again.ConfigVersion
}

func union(a, b *roaring.Bitmap) *roaring.Bitmap {
	if a == nil {
		return b
	}
	a.Or(b)
	return a
}

func (r *FilterResult) addWave(wave Wave) {
	i, found := slices.BinarySearchFunc(r.Waves, wave, func(a, b Wave) int { return a.From.Compare(b.From) })
	if !found {
		r.Waves = slices.Insert(r.Waves, i, wave)
		return
	}
	same := &r.Waves[i]
	same.Users = append(same.Users, wave.Users...)
	if wave.Bitmap != nil {
		same.Bitmap = union(same.Bitmap, wave.Bitmap)
	}
	if wave.ReadyAt.After(same.ReadyAt) {
		same.ReadyAt = wave.ReadyAt
	}
}

// settleSummary adds the decisions of a later call about unavailable users. These users already count as requested.
func settleSummary(s, again *api.Summary) {
	more := *again
	more.Requested, more.Duplicates = 0, 0
	more.Segments = make(map[string]api.SegmentSummary, len(again.Segments))
	for segment, counts := range again.Segments {
		more.Segments[segment] = api.SegmentSummary{Allowed: counts.Allowed}
	}
	s.Unavailable = 0
	s.Add(&more)
}
