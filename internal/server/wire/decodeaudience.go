package wire

import (
	"bytes"
	"encoding/base64"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Audience holds the users of a request, given as ids or as an expression.
type Audience struct {
	Query *api.AudienceQuery // the expression that selects the users; nil: the request lists them
	Taken *api.AudienceTaken // the result of Query; the caller fills it in together with Users
	// distinct users in the order of the request; not pooled, because a store may read the slice after the call
	Users      []capping.UserID
	Bitmap     bool // users came as a bitmap or an expression, so they ascend and the answer has bitmaps
	Duplicates int  // number of repeated ids
}

// Field returns the name of the request field that held the users.
func (a *Audience) Field() string {
	switch {
	case a.Query != nil:
		return "audience"
	case a.Bitmap:
		return "users_bitmap"
	}
	return "user_ids"
}

func (d *decoder) users(name string) (err error) {
	if other := d.otherUsers(name); other != "" {
		return bothGiven(name, other)
	}
	if err := d.bounds.Reserve(int64(len(d.data))); err != nil { // the ids of JSON, or the bytes of base64
		return err
	}
	if name == "user_ids" {
		d.given.Users, err = d.ids(name, make([]capping.UserID, 0, d.capacity()), d.bounds.IDs,
			"split the batch, or send users_bitmap")
		return err
	}
	text, err := d.str(name)
	if err != nil {
		return err
	}
	d.given.Bitmap = true
	d.given.Users, err = bitmapUsers(name, text, d.bounds.Bitmap, d.bounds.Reserve)
	return err
}

// capacity estimates the number of ids in the array ahead, because most ids of real audiences have at least 5 digits.
func (d *decoder) capacity() int {
	return min((len(d.data)-d.pos)/6+8, d.bounds.IDs)
}

// audience decodes the users of a request, each once, or the query that selects them.
func (d *decoder) audience() (Audience, error) {
	if d.seen["audience"] {
		return Audience{Query: &d.asked, Bitmap: true}, nil
	}
	for _, name := range queryFields[1:] {
		if d.seen[name] {
			return Audience{}, Invalid(name, "requires the field audience")
		}
	}
	if !d.seen["user_ids"] && !d.seen["users_bitmap"] {
		return Audience{}, Invalid("user_ids", "exactly one of user_ids, users_bitmap and audience is "+
			"required, but none is given")
	}
	a := d.given
	if len(a.Users) == 0 {
		return Audience{}, Invalid(a.Field(), "the batch is empty: at least one user is required")
	}
	if !ascending(a.Users) {
		a.Users, a.Duplicates = capping.Distinct(a.Users)
	}
	return a, nil
}

// ascending reports whether every id is greater than the previous one.
func ascending(users []capping.UserID) bool {
	for i := 1; i < len(users); i++ {
		if users[i-1] >= users[i] {
			return false
		}
	}
	return true
}

// UserBytes is the memory of a user in a request, in bytes.
const UserBytes = 8

// bitmapUsers decodes the ids of a base64 roaring bitmap, at most limit. The function checks every byte before it
// expands the first id.
func bitmapUsers(field string, text []byte, limit int, reserve func(int64) error) ([]capping.UserID, error) {
	if bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 { // the package skips line ends
		return nil, Invalid(field, "base64 must not contain line breaks")
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(raw, text)
	if err != nil {
		return nil, Invalid(field, "must be padded standard base64 (RFC 4648): %s", err)
	}
	users, err := bitmap.Read(raw[:n])
	if err != nil {
		return nil, Invalid(field, "must be a portable roaring bitmap of 32-bit ids: %s", err)
	}
	if users.Cardinality() > uint64(limit) {
		return nil, FieldFailure(api.CodeTooLarge, field, "%d users: at most %d are allowed: split the batch",
			users.Cardinality(), limit)
	}
	if users.Cardinality() == 0 {
		return nil, nil
	}
	if err := reserve(UserBytes * int64(users.Cardinality())); err != nil {
		return nil, err
	}
	return capping.AppendUsers(make([]capping.UserID, 0, users.Cardinality()), users.IDs()), nil
}
