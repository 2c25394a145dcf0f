package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
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

// Denial is a user who must not be sent to.
type Denial struct {
	UserID  uint32     `json:"user_id"`
	Segment string     `json:"segment"` // "default" for users in no segment
	Limit   string     `json:"limit"`   // the one that frees a slot last
	Max     int        `json:"max"`
	RetryAt *time.Time `json:"retry_at"` // when the user is allowed again; nil: no waiting helps, Max is 0
}

// Wave is the denied users who become eligible within one hour.
type Wave struct {
	From    time.Time // start of the hour
	ReadyAt time.Time // when all of them are eligible
	Users   []uint32
	Bitmap  *roaring.Bitmap
}

// Summary counts users.
type Summary struct {
	Requested   int                       `json:"requested"` // Duplicates included
	Allowed     int                       `json:"allowed"`   // Replayed included
	Denied      map[string]int            `json:"denied"`    // by the name of the limit
	Unavailable int                       `json:"unavailable"`
	Duplicates  int                       `json:"duplicates"`
	Replayed    int                       `json:"replayed"`
	Segments    map[string]SegmentSummary `json:"segments"` // "default" for users in no segment
}

// SegmentSummary counts the users of one segment.
type SegmentSummary struct {
	Requested int `json:"requested"`
	Allowed   int `json:"allowed"`
}

type wireFilter struct {
	MessageID string     `json:"message_id,omitempty"`
	Channel   string     `json:"channel,omitempty"`
	Users     []uint32   `json:"user_ids,omitempty"`
	Bitmap    *bitmap    `json:"users_bitmap,omitempty"`
	Enforce   *bool      `json:"enforce,omitempty"`
	Record    *bool      `json:"record,omitempty"`
	Detail    string     `json:"detail,omitempty"`
	Waves     bool       `json:"waves,omitempty"`
	At        *time.Time `json:"at,omitempty"`
}

type wireResult struct {
	Allowed           []uint32          `json:"allowed"`
	Replayed          []uint32          `json:"replayed"`
	Denied            []Denial          `json:"denied"`
	Unavailable       []uint32          `json:"unavailable"`
	AllowedBitmap     bitmap            `json:"allowed_bitmap"`
	ReplayedBitmap    bitmap            `json:"replayed_bitmap"`
	DeniedBitmaps     map[string]bitmap `json:"denied_bitmaps"`
	UnavailableBitmap bitmap            `json:"unavailable_bitmap"`
	Waves             []struct {
		From    time.Time `json:"from"`
		ReadyAt time.Time `json:"ready_at"`
		Users   []uint32  `json:"user_ids"`
		Bitmap  bitmap    `json:"users_bitmap"`
	} `json:"waves"`
	Summary       Summary `json:"summary"`
	Generation    string  `json:"generation"`
	ConfigVersion string  `json:"config_version"`
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
	var answer wireResult
	if err := c.call(ctx, "POST", "/v1/filter", r.wire(), &answer); err != nil {
		return nil, fmt.Errorf("filter %q: %w", r.MessageID, err)
	}
	return answer.result(r.Bitmap != nil), nil
}

func (r *FilterRequest) check() error {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return errors.New("filter: exactly one of Users and Bitmap must be set")
	}
	return nil
}

func (r *FilterRequest) wire() *wireFilter {
	no := false
	w := &wireFilter{MessageID: r.MessageID, Channel: r.Channel, Users: r.Users, Waves: r.Waves}
	if r.Bitmap != nil {
		w.Bitmap = &bitmap{r.Bitmap}
	}
	if r.Exempt {
		w.Enforce = &no
	}
	if r.Preview {
		w.Record = &no
	}
	if r.Counts {
		w.Detail = "counts"
	}
	if !r.At.IsZero() {
		w.At = &r.At
	}
	return w
}

func (w *wireResult) result(bitmaps bool) *FilterResult {
	r := &FilterResult{
		Allowed: w.Allowed, Replayed: w.Replayed, Denied: w.Denied, Unavailable: w.Unavailable,
		Summary: w.Summary, Generation: w.Generation, ConfigVersion: w.ConfigVersion,
	}
	if bitmaps {
		r.AllowedBitmap, r.ReplayedBitmap = w.AllowedBitmap.orEmpty(), w.ReplayedBitmap.orEmpty()
		r.UnavailableBitmap = w.UnavailableBitmap.orEmpty()
		r.DeniedBitmaps = make(map[string]*roaring.Bitmap, len(w.DeniedBitmaps))
		for limit, users := range w.DeniedBitmaps {
			r.DeniedBitmaps[limit] = users.orEmpty()
		}
	}
	for _, wave := range w.Waves {
		r.Waves = append(r.Waves, Wave{wave.From, wave.ReadyAt, wave.Users, wave.Bitmap.Bitmap})
	}
	return r
}
