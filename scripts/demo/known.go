package main

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
)

// suppressed is the set that gets nothing.
const suppressed = "opted-out"

// known is the limits in force and the users that they are for, as the service tells
// them: what the totals of a blast must be follows from it.
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

// wanted is the totals that a blast must have.
type wanted struct {
	segments          map[string]api.SegmentSummary
	daily, suppressed int
}

// want is the totals of a message to the users: the n-th of a day, but to those of
// others the m-th.
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

// implied is how many of a segment's users may get the n-th message of a day.
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
