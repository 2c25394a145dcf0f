package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// ReleaseRequest gives back the slots of sends that did not go out. Either
// Users or Bitmap is set.
type ReleaseRequest struct {
	MessageID string
	Channel   string // "": every channel, and sends without one
	Users     []uint32
	Bitmap    *roaring.Bitmap // read only
}

// ReleaseResult is the answer. Users who had no such send are counted as
// absent; that is no error.
type ReleaseResult struct {
	Released          []uint32
	Unavailable       []uint32 // not known: release again
	ReleasedBitmap    *roaring.Bitmap
	UnavailableBitmap *roaring.Bitmap
	Summary           ReleaseSummary
}

// ReleaseSummary counts users.
type ReleaseSummary struct {
	Requested   int `json:"requested"`
	Released    int `json:"released"`
	Absent      int `json:"absent"`
	Unavailable int `json:"unavailable"`
	Duplicates  int `json:"duplicates"`
}

// Add adds the counts of another batch.
func (s *ReleaseSummary) Add(batch *ReleaseSummary) {
	s.Requested += batch.Requested
	s.Released += batch.Released
	s.Absent += batch.Absent
	s.Unavailable += batch.Unavailable
	s.Duplicates += batch.Duplicates
}

// Release releases in one call.
func (c *Client) Release(ctx context.Context, r *ReleaseRequest) (*ReleaseResult, error) {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return nil, errors.New("release: exactly one of Users and Bitmap must be set")
	}
	request := struct {
		MessageID string   `json:"message_id"`
		Channel   string   `json:"channel,omitempty"`
		Users     []uint32 `json:"user_ids,omitempty"`
		Bitmap    *bitmap  `json:"users_bitmap,omitempty"`
	}{MessageID: r.MessageID, Channel: r.Channel, Users: r.Users}
	if r.Bitmap != nil {
		request.Bitmap = &bitmap{r.Bitmap}
	}
	var answer struct {
		Released          []uint32       `json:"released"`
		Unavailable       []uint32       `json:"unavailable"`
		ReleasedBitmap    bitmap         `json:"released_bitmap"`
		UnavailableBitmap bitmap         `json:"unavailable_bitmap"`
		Summary           ReleaseSummary `json:"summary"`
	}
	if err := c.call(ctx, "POST", "/v1/release", request, &answer); err != nil {
		return nil, fmt.Errorf("release %q: %w", r.MessageID, err)
	}
	result := &ReleaseResult{Released: answer.Released, Unavailable: answer.Unavailable, Summary: answer.Summary}
	if r.Bitmap != nil {
		result.ReleasedBitmap, result.UnavailableBitmap = answer.ReleasedBitmap.orEmpty(), answer.UnavailableBitmap.orEmpty()
	}
	return result, nil
}

// ReleaseAll is Release for users of any number, in batches as FilterAll.
func (c *Client) ReleaseAll(ctx context.Context, r *ReleaseRequest, each func(*ReleaseResult) error) error {
	if (len(r.Users) > 0) == (r.Bitmap != nil) {
		return errors.New("release: exactly one of Users and Bitmap must be set")
	}
	var mu sync.Mutex
	return c.parallel(ctx, r.Users, r.Bitmap, func(ctx context.Context, users []uint32, part *roaring.Bitmap) error {
		result, err := c.Release(ctx, &ReleaseRequest{MessageID: r.MessageID, Channel: r.Channel, Users: users, Bitmap: part})
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return each(result)
	})
}

// Limit is a limit of the policy.
type Limit struct {
	Name     string   `json:"name"`
	Max      int      `json:"max"`
	Window   string   `json:"window"`             // "24h", or "day" or "week" of the calendar
	Calendar string   `json:"calendar,omitempty"` // "day" or "week"; "": rolling
	Timezone string   `json:"timezone,omitempty"` // of the calendar
	Channels []string `json:"channels,omitempty"` // whose sends count; empty: all
}

// Standing is how a user stands with a limit.
type Standing struct {
	Limit
	Used    int        `json:"used"`
	RetryAt *time.Time `json:"retry_at"` // nil: a slot is free now, or Max is 0
}

// SentRecord is a recorded send.
type SentRecord struct {
	At        time.Time `json:"at"`
	Channel   *string   `json:"channel"`    // nil: sent without one
	Namespace *string   `json:"namespace"`  // nil: not remembered; "": of keys without one
	MessageID *string   `json:"message_id"` // nil: not remembered
}

// Explanation is why a user is allowed or denied.
type Explanation struct {
	UserID        uint32       `json:"user_id"`
	Segment       string       `json:"segment"`
	Generation    string       `json:"generation"`
	ConfigVersion string       `json:"config_version"`
	Limits        []Standing   `json:"limits"`
	Sends         []SentRecord `json:"sends"` // oldest first
}

// Explain tells how a user stands.
func (c *Client) Explain(ctx context.Context, user uint32) (*Explanation, error) {
	return read[Explanation](ctx, c, userPath(user))
}

// Erase removes everything that is kept of a user. Absent is no error.
func (c *Client) Erase(ctx context.Context, user uint32) error {
	if err := c.call(ctx, "DELETE", userPath(user), nil, nil); err != nil {
		return fmt.Errorf("erase user %d: %w", user, err)
	}
	return nil
}

func userPath(user uint32) string { return "/v1/users/" + strconv.FormatUint(uint64(user), 10) }

// Limits is the policy in force.
type Limits struct {
	Version     string             `json:"version"`
	Channels    map[string]uint8   `json:"channels"`
	Default     []Limit            `json:"default"` // of users in no segment, and of segments without limits of their own
	Segments    map[string][]Limit `json:"segments"`
	ToleranceMS int64              `json:"tolerance_ms"` // rolling windows are longer by this
}

// Limits reads the policy.
func (c *Client) Limits(ctx context.Context) (*Limits, error) {
	return read[Limits](ctx, c, "/v1/limits")
}

func read[T any](ctx context.Context, c *Client, path string) (*T, error) {
	answer := new(T)
	if err := c.call(ctx, "GET", path, nil, answer); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return answer, nil
}
