package main

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
)

// The constant "suppressed" is the name of the set whose users receive no messages.
const suppressed = "opted-out"

// The type "known" holds the limits and the users of segments and sets, as the service reports them. From these data,
// the demo computes the expected results of a blast (large campaign).
type known struct {
	limits   *api.Policy
	segments map[string]*roaring.Bitmap
	optedOut *roaring.Bitmap
	country  *roaring.Bitmap // country/my
}

func learn(ctx context.Context, service *client.Client) (*known, error) {
	limits, err := service.Limits(ctx)
	if err != nil {
		return nil, err
	}
	k := &known{limits: limits, segments: map[string]*roaring.Bitmap{}}
	generation := ""
	bitmap := func(name string) (users *roaring.Bitmap) {
		if err == nil {
			users, generation, err = service.SegmentBitmap(ctx, name, generation)
		}
		return users
	}
	for name := range limits.Segments {
		k.segments[name] = bitmap(name)
	}
	k.optedOut, k.country = bitmap(suppressed), bitmap("country/my")
	return k, err
}

// The type "wanted" holds the expected numbers of users whom a blast (large campaign) allows and denies.
type wanted struct {
	segments          map[string]api.SegmentSummary
	daily, suppressed int
}

// The method "want" returns the expected results of a message to the given users. For the users in the bitmap "others",
// the message is their m-th message of the day. For the remaining users, the message is their n-th message of the day.
func (k *known) want(users *roaring.Bitmap, n int, others *roaring.Bitmap, m int) *wanted {
	w := &wanted{segments: map[string]api.SegmentSummary{}}
	rest := users.Clone()
	add := func(name string, of *roaring.Bitmap) {
		if of.IsEmpty() {
			return
		}
		may := roaring.AndNot(of, k.optedOut)
		again := 0
		if others != nil {
			again = int(may.AndCardinality(others))
		}
		row := api.SegmentSummary{Requested: int(of.GetCardinality())}
		row.Allowed = k.implied(name, int(may.GetCardinality())-again, n) + k.implied(name, again, m)
		w.segments[name] = row
		w.suppressed += row.Requested - int(may.GetCardinality())
		w.daily += int(may.GetCardinality()) - row.Allowed
	}
	for name, segment := range k.segments {
		add(name, roaring.And(users, segment))
		rest.AndNot(segment)
	}
	add("default", rest)
	return w
}

// The method "implied" returns the number of users of a segment who may, by the limits, receive an n-th message on the
// same day.
func (k *known) implied(segment string, users, n int) int {
	list, ok := k.limits.Segments[segment]
	if !ok {
		list = k.limits.Default
	}
	for _, limit := range list {
		if n > limit.Max {
			return 0
		}
	}
	return users
}
