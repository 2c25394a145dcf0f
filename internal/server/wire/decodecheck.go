package wire

import (
	"strconv"
	"strings"

	"capper/client/api"
	"capper/internal/ids"
)

// DecodeCheck strictly decodes the body of POST /v1/sends/check.
func DecodeCheck(body []byte, bounds Bounds) (*MessageRequest, error) {
	d := newDecoder(body, bounds, api.SendsCheckRequest{})
	d.keepsPacked = true
	return d.message(&bodyOfMessage{
		noChannel: "a send without a channel", purpose: "it names the send to look for", other: d.images,
	})
}

// The method "images" decodes the field "images", which lists users by id images (64-bit keyed hashes of ids), for ids
// that are not dense.
func (d *decoder) images(name string) error {
	if name != "images" {
		return d.unknown(name)
	}
	if d.bounds.Scheme == nil {
		return Invalid(name, "this deployment's ids are dense (32-bit numbers): use user_ids or users_bitmap")
	}
	if other := d.otherUsers(name); other != "" {
		return d.bounds.bothGiven(name, other)
	}
	if !d.accept('[') {
		return Invalid(name, "%s is not an array of id images (64-bit hashes of ids)", d.value())
	}
	d.given.Given = &Given{scheme: new(ids.Scheme), images: true}
	for !d.accept(']') {
		if len(d.given.Users) > 0 && !d.accept(',') {
			return d.syntax("',' or ']'")
		}
		if err := d.image(name); err != nil {
			return err
		}
	}
	return nil
}

// The method image decodes one id image (64-bit keyed hash of an id): a JSON string of 16 hexadecimal digits.
func (d *decoder) image(field string) error {
	n := len(d.given.Users)
	if n == d.bounds.IDs {
		return FieldFailure(api.CodeTooLarge, field, "has more than %d images: split the batch", n)
	}
	if n == cap(d.given.Users) { // append doubles the capacity
		if err := d.bounds.Reserve(UserBytes * int64(n+1)); err != nil {
			return err
		}
	}
	at := field + "[" + strconv.Itoa(n) + "]"
	text, err := d.str(at)
	if err != nil {
		return err
	}
	user, ok := parseImage(strings.ToLower(string(text)))
	if !ok {
		return Invalid(at, "%q is not an id image: an id image has 16 hexadecimal digits", Clip(text))
	}
	d.given.Users = append(d.given.Users, user)
	return nil
}
