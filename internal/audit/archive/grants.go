package archive

import (
	"context"
	"slices"

	"capper/internal/audit"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type Grants lists the users who still have a recorded send of one message on one channel, according to the audit.
type Grants struct {
	Channel capping.Channel // 0: sends without a channel
	// Users holds the users whose send was allowed and not released later. Unknown holds the users for whom the result
	// of a call is unknown. No user is in both sets.
	Users, Unknown *bitmap.Bitmap
	// If ids are not dense 32-bit numbers, Users and Unknown are nil. Images and UnknownImages then hold the id images
	// of the users in ascending order.
	Images, UnknownImages []capping.UserID
}

// The method Lists returns two lists: users who have a send of the message, and users who may have a send of the
// message.
func (g *Grants) Lists() [2][]capping.UserID {
	if g.Users == nil {
		return [2][]capping.UserID{g.Images, g.UnknownImages}
	}
	return [2][]capping.UserID{capping.AppendUsers(nil, g.Users.IDs()), capping.AppendUsers(nil, g.Unknown.IDs())}
}

// The method Grants returns the users who have or may have a recorded send of the message, for each channel. Sends
// without a channel come first. If the argument "channel" is 0, Grants selects all channels. The result of Grants
// contains no channels without users. If an audit file is unreadable, Grants returns an error and no users.
func (a *Archive) Grants(ctx context.Context, message capping.Message, channel capping.Channel) ([]Grants, error) {
	byChannel := map[capping.Channel]*held{}
	q := Query{Message: &message, Channel: channel, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	for r, err := range a.Records(ctx, q) {
		if err != nil {
			return nil, err
		}
		if r.Kind == audit.Filter {
			if byChannel[r.Channel] == nil {
				byChannel[r.Channel] = a.newHeld()
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
		if g, some := h.grants(); some {
			g.Channel = on
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b Grants) int { return int(a.Channel) - int(b.Channel) })
	return list, nil
}

// The type "held" collects the users who have a send of the message, from the audit records that were read so far.
type held struct {
	users, unknown bitmap.Set
	images         map[capping.UserID]bool // used if ids are not dense; the value false means an unknown result
}

func (a *Archive) newHeld() *held {
	if a.ids.Dense() {
		return &held{}
	}
	return &held{images: map[capping.UserID]bool{}}
}

// The method "grants" returns two sets: users who have a send of the message, and users who may have a send of the
// message. The result "some" of the method "grants" is false if both sets are empty.
func (h *held) grants() (g Grants, some bool) {
	if h.images == nil {
		g.Users = h.users.Bitmap()
		h.unknown.Subtract(g.Users)
		g.Unknown = h.unknown.Bitmap()
		return g, g.Users.Cardinality()+g.Unknown.Cardinality() > 0
	}
	for image, sent := range h.images {
		if sent {
			g.Images = append(g.Images, image)
		} else {
			g.UnknownImages = append(g.UnknownImages, image)
		}
	}
	slices.Sort(g.Images)
	slices.Sort(g.UnknownImages)
	return g, len(h.images) > 0
}

func (h *held) sent(r *audit.Record) {
	for i := range r.Groups {
		g := &r.Groups[i]
		switch sent := g.Outcome == audit.Allowed || g.Outcome == audit.Replayed; {
		case !sent && g.Outcome != audit.Unavailable:
		case g.Users == nil:
			for _, image := range g.Images {
				h.images[image] = h.images[image] || sent
			}
		case sent:
			h.users.AddBitmap(g.Users)
		default:
			h.unknown.AddBitmap(g.Users)
		}
	}
}

func (h *held) gaveBack(r *audit.Record) {
	for i := range r.Groups {
		if g := &r.Groups[i]; g.Outcome == audit.Released || g.Outcome == audit.Absent {
			if g.Users == nil {
				for _, image := range g.Images {
					delete(h.images, image)
				}
				continue
			}
			h.users.Subtract(g.Users)
			h.unknown.Subtract(g.Users)
		}
	}
}
