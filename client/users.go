package client

import (
	"errors"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client/api"
)

// The type "given" holds the fields of a request that can name the users of a call. A request must contain exactly one
// of the fields of the type "given".
type given struct {
	users    []uint32
	ids      []string
	bitmap   *roaring.Bitmap
	packed   *Packed
	audience *Audience
}

// The method "check" returns an error unless exactly one field names the users of a call.
func (g *given) check(call string) error {
	ways := 0
	for _, way := range []bool{len(g.users) > 0, len(g.ids) > 0, g.bitmap != nil, g.packed != nil,
		g.audience != nil} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return errors.New(call + ": exactly one of Users, Bitmap and Audience (or IDs or Packed) must be set")
	}
	if g.packed != nil && (g.packed.Len() == 0 || g.packed.Len()*g.packed.Width != len(g.packed.Bytes)) {
		return errors.New(call + ": Packed must hold Width bytes for each of at least one id")
	}
	return nil
}

// wireBitmap converts a bitmap of users to the form in which a request contains it, or returns nil if the argument
// "users" is nil.
func wireBitmap(users *roaring.Bitmap) *api.Bitmap {
	if users == nil {
		return nil
	}
	return &api.Bitmap{Bitmap: users}
}
