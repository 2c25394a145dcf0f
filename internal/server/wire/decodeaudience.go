package wire

import (
	"errors"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
)

// Audience holds the users of a request. A request either lists the ids of its users, or selects the users by an
// audience expression.
type Audience struct {
	Query *api.AudienceQuery // expression that selects the users; nil: the request lists ids
	Taken *api.AudienceTaken // result of Query; the caller sets Taken together with Users
	// Users are distinct, in the order of the request. The slice is not pooled, because a store may read the slice
	// after the end of the call.
	Users []capping.UserID
	Given *Given // ids of Users for the response; nil: dense ids as numbers, or no ids
	Form  Form   // the form in which the response lists users
	// Positions holds the positions of the elements of Users in the packed ids of the request. Nil means that the
	// request has no repeated ids.
	Positions  []uint32
	Duplicates int // number of repeated ids
}

// Form is the form in which a response lists users. The request field that names the users determines the form in which
// the response lists users. If the request has an audience expression, the kind of the deployment's user ids determines
// the form of the response.
type Form uint8

// These constants are the forms in which responses list users.
const (
	InLists     Form = iota // lists of ids: for user_ids, and for expressions over text ids
	InBitmaps               // bitmaps of dense ids: for users_bitmap, and for expressions over dense ids
	InPositions             // bitmaps of positions in the request: for users_packed
	InPacked                // packed ids: for expressions over UUIDs and uint64 ids
)

// Field returns the name of the request field that names the users.
func (a *Audience) Field() string {
	switch {
	case a.Query != nil:
		return "audience"
	case a.Form == InBitmaps:
		return "users_bitmap"
	case a.Form == InPositions:
		return "users_packed"
	case a.Given != nil && a.Given.images:
		return "images"
	}
	return "user_ids"
}

func (d *decoder) users(name string) (err error) {
	if other := d.otherUsers(name); other != "" {
		return d.bounds.bothGiven(name, other)
	}
	if err := d.bounds.Reserve(int64(len(d.data))); err != nil { // for the ids in JSON, or the bytes of base64
		return err
	}
	if name == "user_ids" {
		remedy := "split the batch, or send users_bitmap"
		if d.bounds.Scheme != nil {
			remedy = "split the batch"
		}
		d.given.Users, d.given.Given, err = d.listed(name, d.bounds.IDs, remedy)
		return err
	}
	if err := d.bounds.hasForm(name); err != nil {
		return err
	}
	text, err := d.str(name)
	if err != nil {
		return err
	}
	if name == "users_packed" {
		d.given.Form = InPositions
		d.given.Users, err = d.packed(name, text)
		return err
	}
	d.given.Form = InBitmaps
	d.given.Users, err = bitmapUsers(name, text, d.bounds.Bitmap, d.bounds.Reserve)
	return err
}

// The method "listed" decodes a JSON array of at most "limit" user ids. If the array has more ids, the error text ends
// with the argument "remedy", which tells the caller what to do instead.
func (d *decoder) listed(field string, limit int, remedy string) ([]capping.UserID, *Given, error) {
	if d.bounds.Scheme != nil {
		return d.givenIDs(d.bounds.Scheme, field, limit, remedy)
	}
	start := d.pos
	users, err := d.ids(field, make([]capping.UserID, 0, min(d.capacity(), limit)), limit, remedy)
	if errors.Is(err, errQuoted) {
		d.pos = start
		return d.givenIDs(new(ids.Scheme), field, limit, remedy)
	}
	return users, nil, err
}

// The method capacity estimates the number of ids in the JSON array at the current position. The estimate assumes 5
// digits for an id, because most ids have at least 5 digits.
func (d *decoder) capacity() int {
	return min((len(d.data)-d.pos)/6+8, d.bounds.IDs)
}

// The method audience returns the decoded users of a request without duplicates, or the audience query that selects the
// users.
func (d *decoder) audience() (Audience, error) {
	if d.seen["audience"] {
		return Audience{Query: &d.asked, Form: InBitmaps}, nil
	}
	for _, name := range queryFields[1:] {
		if d.seen[name] {
			return Audience{}, Invalid(name, "requires the field audience")
		}
	}
	if !d.seen["user_ids"] && !d.seen["users_bitmap"] && !d.seen["users_packed"] && !d.seen["images"] {
		return Audience{}, Invalid("user_ids", "exactly one of %s is required, but none is given", d.bounds.forms())
	}
	a := d.given
	if len(a.Users) == 0 {
		return Audience{}, Invalid(a.Field(), "the batch is empty: at least one user is required")
	}
	switch {
	case ascending(a.Users):
	case a.Given != nil:
		a.Users, a.Duplicates = a.Given.distinct(a.Users)
	case a.Form == InPositions:
		a.distinctPositions()
	default:
		a.Users, a.Duplicates = capping.Distinct(a.Users)
	}
	return a, nil
}

// The function ascending reports whether each user number in the list is greater than the number before.
func ascending(users []capping.UserID) bool {
	for i := 1; i < len(users); i++ {
		if users[i-1] >= users[i] {
			return false
		}
	}
	return true
}

// UserBytes is the memory in bytes for one decoded user of a request, without the memory for the original id.
const UserBytes = 8

// Bytes returns the memory of the decoded users in bytes.
func (a *Audience) Bytes() int64 {
	return UserBytes*int64(len(a.Users)) + a.Given.size() + 4*int64(len(a.Positions))
}

// IDBytes returns the size in bytes of one id in a response, including a comma.
func (a *Audience) IDBytes() int {
	if a.Given == nil {
		return len("4294967295,")
	}
	return a.Given.bytesOf(len(a.Users))
}

// GivenBytes returns the memory in bytes of the original ids, or of the positions of packed ids, in request and
// response. If the request has dense ids as JSON numbers, GivenBytes returns 0, because other estimates of the response
// size include these ids.
func (a *Audience) GivenBytes() int64 {
	switch {
	case a.Form == InPositions && a.Given == nil:
		return UserBytes * int64(len(a.Users)) // for the positions
	case a.Given == nil:
		return 0
	}
	return a.Given.size() + int64((UserBytes+a.IDBytes())*len(a.Users))
}

// bitmapUsers decodes a roaring bitmap in base64 with at most "limit" ids. The function bitmapUsers validates every
// byte of the bitmap before it expands the first id.
func bitmapUsers(field string, text []byte, limit int, reserve func(int64) error) ([]capping.UserID, error) {
	raw, err := rawBase64(field, text)
	if err != nil {
		return nil, err
	}
	users, err := bitmap.Read(raw)
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
