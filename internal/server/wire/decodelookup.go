package wire

import (
	"slices"
	"strconv"

	"capper/client/api"
)

// LookupRequest is the decoded body of POST /v1/segments/lookup. DecodeLookup does not check whether the sets in the
// request exist.
type LookupRequest struct {
	Audience
	Generation string   // generation to read; "": the generation of Query, or the current generation
	Sets       []string // distinct names of sets
}

// DecodeLookup strictly decodes the body of POST /v1/segments/lookup.
func DecodeLookup(body []byte, bounds Bounds) (*LookupRequest, error) {
	d := newDecoder(body, bounds, api.LookupRequest{})
	r := &LookupRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "user_ids", "users_bitmap", "users_packed":
			err = d.users(name)
		case "sets":
			r.Sets, err = d.sets()
		default:
			err = d.queryOrUnknown(name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !d.seen["audience"] {
		r.Generation = d.asked.Generation
		delete(d.seen, "generation") // every call may set this field, even without an audience
	}
	r.Audience, err = d.audience()
	return r, err
}

// The method "sets" decodes an array of set names.
func (d *decoder) sets() (names []string, err error) {
	const field = "sets"
	if !d.accept('[') {
		return nil, Invalid(field, "%s is not an array of names", d.value())
	}
	if d.accept(']') {
		return nil, nil
	}
	for {
		if len(names) == api.MaxLookupSets {
			return nil, Invalid(field, "at most %d names are allowed, got more", api.MaxLookupSets)
		}
		at := field + "[" + strconv.Itoa(len(names)) + "]"
		name, err := d.id(at, maxText)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, name) {
			return nil, Invalid(at, "%q is given twice", Clip([]byte(name)))
		}
		names = append(names, name)
		if d.accept(']') {
			return names, nil
		}
		if !d.accept(',') {
			return nil, d.syntax("',' or ']'")
		}
	}
}

// CountRequest is the decoded body of POST /v1/audience/count.
type CountRequest struct {
	Query   api.AudienceQuery
	Total   bool // the field detail is "total"
	Preview bool // the field channel is given
	Channel string
}

// DecodeCount strictly decodes the body of POST /v1/audience/count.
func DecodeCount(body []byte, bounds Bounds) (*CountRequest, error) {
	d := newDecoder(body, bounds, api.AudienceCountRequest{})
	r := &CountRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "channel":
			text, err := d.str(name)
			r.Preview, r.Channel = true, string(text)
			return err
		case "detail":
			r.Total, err = d.detail(api.DetailSets, api.DetailTotal)
			return err
		case "max_users", "cursor":
			return Invalid(name, "must be absent, because a count covers a whole audience, sample or part")
		}
		return d.queryOrUnknown(name)
	})
	if err == nil && !d.seen["audience"] {
		err = Invalid("audience", "is required: the expression selects the users to count; "+
			"the expression all selects every user")
	}
	r.Query = d.asked
	return r, err
}
