package wire

import (
	"errors"

	"capper/client/api"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
)

// Audience holds the users of a request, given as ids or as an expression.
type Audience struct {
	Query *api.AudienceQuery // the expression that selects the users; nil: the request lists them
	Taken *api.AudienceTaken // the result of Query; the caller fills it in together with Users
	// distinct users in the order of the request; not pooled, because a store may read the slice after the call
	Users []capping.UserID
	Given *Given // the ids of Users, which the answer names; nil: dense ids as numbers, or no ids
	Form  Form   // the form in which the answer names users
	// Positions are those of Users in the packed ids of the request; nil: the ids were distinct.
	Positions  []uint32
	Duplicates int // number of repeated ids
}

// Form is the form in which an answer names users. The form of the request decides about it, and for an expression the
// kind of the deployment's ids.
type Form uint8

// An answer has one of these forms.
const (
	InLists     Form = iota // lists of ids: of user_ids, and of expressions over text ids
	InBitmaps               // bitmaps of dense ids: of users_bitmap, and of expressions over dense ids
	InPositions             // bitmaps of positions in the request: of users_packed
	InPacked                // packed ids: of expressions over UUIDs and uint64 ids
)

// Field returns the name of the request field that held the users.
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
	if err := d.bounds.Reserve(int64(len(d.data))); err != nil { // the ids of JSON, or the bytes of base64
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

// listed decodes an array of at most limit ids. The error for more ids ends with the remedy.
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

// capacity estimates the number of ids in the array ahead, because most ids of real audiences have at least 5 digits.
func (d *decoder) capacity() int {
	return min((len(d.data)-d.pos)/6+8, d.bounds.IDs)
}

// audience decodes the users of a request, each once, or the query that selects them.
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

// ascending reports whether every id is greater than the previous one.
func ascending(users []capping.UserID) bool {
	for i := 1; i < len(users); i++ {
		if users[i-1] >= users[i] {
			return false
		}
	}
	return true
}

// UserBytes is the memory of a user in a request, in bytes, without the ids of Given.
const UserBytes = 8

// Bytes returns the memory of the decoded users in bytes.
func (a *Audience) Bytes() int64 {
	return UserBytes*int64(len(a.Users)) + a.Given.size() + 4*int64(len(a.Positions))
}

// IDBytes returns the size of an id in an answer, with a comma, in bytes.
func (a *Audience) IDBytes() int {
	if a.Given == nil {
		return len("4294967295,")
	}
	return a.Given.bytesOf(len(a.Users))
}

// GivenBytes returns the memory of the ids of Given in the request and in the answer, or of the positions of packed
// ids, in bytes. It is 0 for dense ids as numbers, which the other estimates of an answer contain.
func (a *Audience) GivenBytes() int64 {
	switch {
	case a.Form == InPositions && a.Given == nil:
		return UserBytes * int64(len(a.Users)) // positions
	case a.Given == nil:
		return 0
	}
	return a.Given.size() + int64((UserBytes+a.IDBytes())*len(a.Users))
}

// bitmapUsers decodes the ids of a base64 roaring bitmap, at most limit. The function checks every byte before it
// expands the first id.
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
