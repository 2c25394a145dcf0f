package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// SetChange is the decoded body of POST /v1/sets/{set}/members, which adds users to a set and removes users from it.
// The lists Add and Remove are in strictly ascending order, and no user is in both lists.
type SetChange struct {
	Add, Remove []capping.UserID
	At          capping.Instant // 0: the request contains no time

	added, removed *Given // ids of Add and Remove; nil: dense ids as numbers, or images
	// If addedImages or removedImages is true, the request listed these users by id images (64-bit keyed hashes of
	// ids).
	addedImages, removedImages bool
}

// The method Users returns the number of users whom the request adds to the set or removes from the set.
func (c *SetChange) Users() int { return len(c.Add) + len(c.Remove) }

// Bytes returns the memory of the decoded users in bytes.
func (c *SetChange) Bytes() int64 {
	return UserBytes*int64(c.Users()) + c.added.size() + c.removed.size()
}

// AnswerBytes returns the approximate memory in bytes of the ids in the response. For users that the request named by
// dense ids as JSON numbers, AnswerBytes counts 0 bytes.
func (c *SetChange) AnswerBytes() int64 { return 4 * (c.added.size() + c.removed.size()) }

// The method Unstored adds to the failure f the users whose change the store may not have stored. The users must be in
// ascending order.
func (c *SetChange) Unstored(f *Failure, users []capping.UserID) {
	if c.added == nil && c.removed == nil && !c.addedImages && !c.removedImages {
		f.Unavailable = capping.AppendDense(nil, users)
		return
	}
	for _, user := range users {
		given, isImage := c.added, c.addedImages
		i, ok := slices.BinarySearch(c.Add, user)
		if !ok {
			given, isImage = c.removed, c.removedImages
			i, ok = slices.BinarySearch(c.Remove, user)
		}
		switch {
		case !ok:
		case isImage:
			f.UnavailableImages = append(f.UnavailableImages, imageText(user))
		default:
			f.UnavailableIDs = append(f.UnavailableIDs, given.canonical(i, user))
		}
	}
}

// Field returns the name of the request field that listed users, for errors about the number of users.
func (c *SetChange) Field() string {
	if len(c.Add) == 0 {
		return "remove"
	}
	return "add"
}

// setDecoder decodes the body of a request that changes a set.
type setDecoder struct {
	*decoder
	change SetChange
	field  map[*[]capping.UserID]string // name of the request field with the list
}

// DecodeSetChange strictly decodes the body of POST /v1/sets/{set}/members. DecodeSetChange rejects a change whose time
// is after "latest". DecodeSetChange replaces a time between "now" and "latest" by "now".
func DecodeSetChange(body []byte, bounds Bounds, now, latest time.Time) (*SetChange, error) {
	d := &setDecoder{decoder: newDecoder(body, bounds, api.SetChange{}), field: map[*[]capping.UserID]string{}}
	c := &d.change
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "add", "add_bitmap", "add_images":
			return d.list(name, &c.Add)
		case "remove", "remove_bitmap", "remove_images":
			return d.list(name, &c.Remove)
		case "at":
			c.At, err = d.time(now, latest)
			return err
		}
		return d.unknown(name)
	})
	if err != nil {
		return nil, err
	}
	return c, d.check()
}

// The method list decodes a field that lists users as ids, as id images (64-bit keyed hashes of ids) or as a bitmap.
func (d *setDecoder) list(name string, to *[]capping.UserID) (err error) {
	if other := d.field[to]; other != "" {
		return Invalid(name, "%s and %s are both given, but at most one of them is allowed", other, name)
	}
	d.field[to] = name
	if err := d.bounds.Reserve(int64(len(d.data))); err != nil { // for the ids in JSON, or the bytes of base64
		return err
	}
	switch name {
	case "add_images":
		d.change.addedImages = true
		*to, err = d.images(name)
		return err
	case "remove_images":
		d.change.removedImages = true
		*to, err = d.images(name)
		return err
	case "add_bitmap", "remove_bitmap":
		if d.bounds.Scheme != nil {
			return Invalid(name, "this deployment's ids are %s: use %s", d.bounds.Scheme.Kind(),
				strings.TrimSuffix(name, "_bitmap"))
		}
		text, err := d.str(name)
		if err != nil {
			return err
		}
		*to, err = bitmapUsers(name, text, min(d.bounds.Bitmap, api.MaxSetUsers), d.bounds.Reserve)
		return err
	}
	var given *Given
	*to, given, err = d.listed(name, d.most(), "split the call")
	switch {
	case err != nil:
		return err
	case given != nil:
		*to, given = given.sorted(*to)
	case !ascending(*to):
		slices.Sort(*to)
		*to = slices.Compact(*to)
	}
	if name == "add" {
		d.change.added = given
	} else {
		d.change.removed = given
	}
	return nil
}

// The method "most" returns the maximum number of users that the request may add or remove.
func (d *setDecoder) most() int { return min(d.bounds.IDs, api.MaxSetUsers) }

// The method "images" decodes an array of id images (64-bit keyed hashes of ids), and returns the distinct users in
// ascending order.
func (d *setDecoder) images(field string) ([]capping.UserID, error) {
	if d.bounds.Scheme == nil {
		return nil, Invalid(field, "this deployment's ids are dense (32-bit numbers): use %s",
			strings.TrimSuffix(field, "_images"))
	}
	if !d.accept('[') {
		return nil, Invalid(field, "%s is not an array of id images (64-bit hashes of ids)", d.value())
	}
	if d.accept(']') {
		return nil, nil
	}
	var users []capping.UserID
	for {
		if len(users) == d.most() {
			return nil, FieldFailure(api.CodeTooLarge, field, "has more than %d images: split the call", d.most())
		}
		at := fmt.Sprintf("%s[%d]", field, len(users))
		text, err := d.str(at)
		if err != nil {
			return nil, err
		}
		user, ok := parseImage(string(text))
		if !ok {
			return nil, Invalid(at, "%q is not an id image: an id image has 16 hexadecimal digits in lower case",
				Clip(text))
		}
		users = append(users, user)
		if d.accept(']') {
			slices.Sort(users)
			return slices.Compact(users), nil
		}
		if !d.accept(',') {
			return nil, d.syntax("',' or ']'")
		}
	}
}

// The variable earliest is the earliest time that a caller may state for a change of a set.
var earliest = capping.Instant(0).Time()

// The method time decodes the field "at", which is the time of the changes.
func (d *setDecoder) time(now, latest time.Time) (capping.Instant, error) {
	const field = "at"
	text, err := d.str(field)
	if err != nil {
		return 0, err
	}
	at, err := time.Parse(time.RFC3339, string(text))
	switch {
	case err != nil || !rfc3339.Match(text):
		return 0, Invalid(field, "%q is not an RFC 3339 time such as 2026-11-21T09:00:00Z", Clip(text))
	case at.After(latest):
		return 0, Invalid(field, "%s is in the future: the time is now %s, and a change must have a past time", text,
			now.UTC().Format(api.Milliseconds))
	case capping.InstantOf(at) <= 0 || at.Before(earliest):
		return 0, Invalid(field, "%s is too early: the time must be after %s", text, earliest.Format(time.RFC3339))
	}
	return min(capping.InstantOf(at), capping.InstantOf(now)), nil
}

// The method check returns an error if the request lists no users, too many users, or a user both to add and to remove.
func (d *setDecoder) check() error {
	c := &d.change
	switch n := c.Users(); {
	case len(d.field) == 0:
		return Invalid("add", "add or remove is required: at least one user must be added or removed")
	case n == 0:
		return Invalid(d.firstField(), "the lists are empty: at least one user must be added or removed")
	case n > api.MaxSetUsers:
		return FieldFailure(api.CodeTooLarge, d.firstField(), "%d users: at most %d are allowed in one call: split "+
			"the call", n, api.MaxSetUsers)
	}
	for i, k := 0, 0; i < len(c.Add) && k < len(c.Remove); {
		switch add, remove := c.Add[i], c.Remove[k]; {
		case add < remove:
			i++
		case remove < add:
			k++
		default:
			name := imageText(add)
			if !c.addedImages {
				name = c.added.name(i, add)
			}
			return Invalid(d.field[&c.Remove], "user %s is also in %s: a call must either add or remove a user", name,
				d.field[&c.Add])
		}
	}
	return nil
}

// firstField returns the name of the request field that listed users to add. If the request adds no users, firstField
// returns the name of the request field that listed users to remove.
func (d *setDecoder) firstField() string {
	if field := d.field[&d.change.Add]; field != "" {
		return field
	}
	return d.field[&d.change.Remove]
}
