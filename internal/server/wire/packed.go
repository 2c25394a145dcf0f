package wire

import (
	"bytes"
	"encoding/base64"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
)

// hasForm returns a failure if the deployment's kind of ids does not allow the field, for example the field
// "users_bitmap" with UUIDs.
func (b *Bounds) hasForm(name string) error {
	switch {
	case name == "users_packed" && b.Scheme == nil:
		return Invalid(name, "this deployment's ids are dense (32-bit numbers): use user_ids, users_bitmap or audience")
	case name == "users_packed" && b.Scheme.Width() == 0, name == "users_bitmap" && b.Scheme != nil:
		return Invalid(name, "this deployment's ids are %s: use %s", b.Scheme.Kind(), b.otherForms())
	}
	return nil
}

// otherForms lists, for an error text, the request fields that may contain users whose ids are not dense (not 32-bit
// numbers).
func (b *Bounds) otherForms() string {
	if b.Scheme.Width() == 0 {
		return "user_ids or audience"
	}
	return "user_ids, users_packed or audience"
}

// The method "forms" lists, for an error text, the request fields that can contain users. A request must contain
// exactly one of the listed fields.
func (b *Bounds) forms() string {
	switch {
	case b.Scheme == nil:
		return "user_ids, users_bitmap and audience"
	case b.Scheme.Width() == 0:
		return "user_ids and audience"
	}
	return "user_ids, users_packed and audience"
}

// The method "packed" decodes packed ids in base64, and returns their id images (64-bit keyed hashes of ids).
func (d *decoder) packed(field string, text []byte) ([]capping.UserID, error) {
	raw, err := rawBase64(field, text)
	if err != nil {
		return nil, err
	}
	width := d.bounds.Scheme.Width()
	if len(raw)%width != 0 {
		return nil, Invalid(field, "must hold %d bytes for each id of the kind %s, got %d bytes", width,
			d.bounds.Scheme.Kind(), len(raw))
	}
	n := len(raw) / width
	if n > d.bounds.Bitmap {
		return nil, FieldFailure(api.CodeTooLarge, field, "%d users: at most %d are allowed: split the batch", n,
			d.bounds.Bitmap)
	}
	if err := d.bounds.Reserve(packedBytes * int64(n)); err != nil {
		return nil, err
	}
	if d.keepsPacked {
		d.given.Given = &Given{scheme: d.bounds.Scheme, packed: raw, quoted: true}
	}
	return imagesOf(d.bounds.Scheme, raw), nil
}

// packedBytes is the memory in bytes for one user of a request with packed ids: an id image (8), a position (4), and
// two entries in the table that finds repeated users.
const packedBytes = UserBytes + 4 + 8

// imagesOf returns the id images (64-bit keyed hashes) of packed ids. The scheme (kind and key of ids) defines the
// fixed width of each packed id.
func imagesOf(scheme *ids.Scheme, raw []byte) []capping.UserID {
	width, parser := scheme.Width(), scheme.NewParser()
	users := make([]capping.UserID, 0, len(raw)/width)
	for ; len(raw) > 0; raw = raw[width:] {
		image, _ := parser.Packed(raw[:width])
		users = append(users, capping.UserID(image))
	}
	return users
}

// rawBase64 decodes padded standard base64 strictly.
func rawBase64(field string, text []byte) ([]byte, error) {
	if bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 { // the library would skip line breaks
		return nil, Invalid(field, "base64 must not contain line breaks")
	}
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(raw, text)
	if err != nil {
		return nil, Invalid(field, "must be padded standard base64 (RFC 4648): %s", err)
	}
	return raw[:n], nil
}

// distinctPositions removes repeated users, and stores the position of each remaining user in the request.
func (a *Audience) distinctPositions() {
	total := len(a.Users)
	a.Users, a.Duplicates = capping.DistinctMoved(a.Users, func(to, from int) {
		if a.Positions == nil { // no user so far changed its position
			a.Positions = make([]uint32, to, total)
			for i := range a.Positions {
				a.Positions[i] = uint32(i)
			}
		}
		a.Positions = append(a.Positions, uint32(from))
	})
}

// named() returns the numbers that represent the users in the bitmaps of a response. If the request contained packed
// ids, named() returns positions in the request. If the response has packed ids, named() returns the indexes of the ids
// in the response. For all other forms, named() returns the numbers of the users themselves.
func (a *Audience) named(users []capping.UserID) []capping.UserID {
	if a.Form != InPositions && a.Form != InPacked {
		return users
	}
	positions := make([]capping.UserID, len(users))
	for i := range positions {
		if positions[i] = capping.UserID(i); i < len(a.Positions) {
			positions[i] = capping.UserID(a.Positions[i])
		}
	}
	return positions
}

// The method "names" returns the endings of the names of response fields that contain users in a certain form, such as
// "bitmap" and "bitmaps".
func (f Form) names() (one, many string) {
	switch f {
	case InPositions:
		return "positions", "positions"
	case InPacked:
		return "packed", "packed"
	}
	return "bitmap", "bitmaps"
}
