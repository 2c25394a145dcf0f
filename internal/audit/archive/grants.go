package archive

import (
	"context"
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Grants lists the users who still hold a send of one message on one channel, according to the audit.
type Grants struct {
	Channel capping.Channel // 0: without one
	// Users holds the users whose send was allowed and not released since. Unknown holds the users whose call ended
	// with an unknown result. The two sets are disjoint.
	Users, Unknown *bitmap.Bitmap
}

// Grants returns the users who hold sends of the message, by channel, beginning with sends without a channel. Channel
// 0 means all channels. Channels without such users are left out. An error means that some users may be missing.
func (a *Archive) Grants(ctx context.Context, message capping.Message, channel capping.Channel) ([]Grants, error) {
	byChannel := map[capping.Channel]*held{}
	q := Query{Message: &message, Channel: channel, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	for r, err := range a.Records(ctx, q) {
		if err != nil {
			return nil, err
		}
		if r.Kind == audit.Filter {
			if byChannel[r.Channel] == nil {
				byChannel[r.Channel] = &held{}
			}
			byChannel[r.Channel].sent(r)
			continue
		}
		for on, h := range byChannel {
			if r.Channel == 0 || r.Channel == on {
				h.gaveBack(r)
			}
		}
	}
	var list []Grants
	for on, h := range byChannel {
		g := Grants{Channel: on, Users: h.users.Bitmap()}
		h.unknown.Subtract(g.Users)
		if g.Unknown = h.unknown.Bitmap(); g.Users.Cardinality()+g.Unknown.Cardinality() > 0 {
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b Grants) int { return int(a.Channel) - int(b.Channel) })
	return list, nil
}

// held collects the users who hold a send, from the records read so far.
type held struct{ users, unknown bitmap.Set }

func (h *held) sent(r *audit.Record) {
	for i := range r.Groups {
		switch g := &r.Groups[i]; g.Outcome {
		case audit.Allowed, audit.Replayed:
			h.users.AddBitmap(g.Users)
		case audit.Unavailable:
			h.unknown.AddBitmap(g.Users)
		}
	}
}

func (h *held) gaveBack(r *audit.Record) {
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Outcome == audit.Released || g.Outcome == audit.Absent {
			h.users.Subtract(g.Users)
			h.unknown.Subtract(g.Users)
		}
	}
}
