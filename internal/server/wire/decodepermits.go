package wire

import (
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
)

// PermitsRequest is the decoded body of POST /v1/permits. DecodePermits does not check whether the pacers in the
// request are configured.
type PermitsRequest struct {
	Pacers    []string // names, 1 to api.MaxPacers
	Permits   int      // 0 to api.MaxPermits
	MaxWait   time.Duration
	RequestID string // "": no request id
	MessageID string // "": no message id
	Key       string // "": no key
	Share     string // "": the share of the client
	Lease     time.Duration
}

// DecodePermits strictly decodes the body of POST /v1/permits.
func DecodePermits(body []byte) (*PermitsRequest, error) {
	d := newDecoder(body, Bounds{}, api.PermitsRequest{})
	r := &PermitsRequest{}
	err := d.document(func(name string) error {
		if err := d.markSeen(name); err != nil {
			return err
		}
		return d.ofPermits(r, name)
	})
	if err == nil {
		err = d.permitsRequired()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// ReturnRequest is the decoded body of POST /v1/permits/return. A ReturnRequest names the earlier request that got the
// permits, and the number of permits that the caller has used.
type ReturnRequest struct {
	PermitsRequest
	Used int
}

// DecodeReturn strictly decodes the body of POST /v1/permits/return.
func DecodeReturn(body []byte) (*ReturnRequest, error) {
	d := newDecoder(body, Bounds{}, api.PermitsReturn{})
	r := &ReturnRequest{}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		if name != "used" {
			return d.ofPermits(&r.PermitsRequest, name)
		}
		r.Used, err = d.permits(name)
		return err
	})
	if err == nil {
		err = d.permitsRequired()
	}
	switch {
	case err != nil:
		return nil, err
	case r.RequestID == "":
		return nil, Invalid("request_id", "is required: permits without a request_id cannot be given back")
	case r.Permits == 0:
		return nil, Invalid("permits", "must be the number of permits in the call that took them, got 0")
	}
	return r, nil
}

// The method ofPermits decodes one field in the body of a permit request.
func (d *decoder) ofPermits(r *PermitsRequest, name string) (err error) {
	switch name {
	case "pacers":
		r.Pacers, err = d.pacers()
	case "permits":
		r.Permits, err = d.permits(name)
	case "max_wait":
		r.MaxWait, err = d.duration(name, 0, api.MaxWait)
	case "lease":
		r.Lease, err = d.duration(name, api.MinLease, api.MaxLease)
	case "request_id":
		r.RequestID, err = d.id(name, api.MaxRequestID)
	case "message_id":
		r.MessageID, err = d.messageID()
	case "key":
		r.Key, err = d.id(name, api.MaxPacerKey)
	case "share":
		r.Share, err = d.share()
	default:
		err = d.unknown(name)
	}
	return err
}

// permitsRequired returns an error if a permit request lacks a required field.
func (d *decoder) permitsRequired() error {
	switch {
	case !d.seen["pacers"]:
		return Invalid("pacers", "is required: name 1 to %d pacers", api.MaxPacers)
	case !d.seen["permits"]:
		return Invalid("permits", "is required: the number of permits, 0 to %d", api.MaxPermits)
	}
	return nil
}

// The method "pacers" decodes an array of pacer names.
func (d *decoder) pacers() (names []string, err error) {
	const field = "pacers"
	if !d.accept('[') {
		return nil, Invalid(field, "%s is not an array of names", d.value())
	}
	if d.accept(']') {
		return nil, Invalid(field, "must not be empty: name 1 to %d pacers", api.MaxPacers)
	}
	for {
		name, err := d.pacer(field + "[" + strconv.Itoa(len(names)) + "]")
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if d.accept(']') {
			break
		}
		if !d.accept(',') {
			return nil, d.syntax("',' or ']'")
		}
	}
	if len(names) > api.MaxPacers {
		return nil, Invalid(field, "must have at most %d names, got %d", api.MaxPacers, len(names))
	}
	return names, nil
}

// The method pacer decodes a valid name of a pacer.
func (d *decoder) pacer(field string) (string, error) {
	name, err := d.str(field)
	if err == nil && !capping.IsName(string(name)) {
		err = Invalid(field, "%q is not the name of a pacer", Clip(name))
	}
	return string(name), err
}

// The method share decodes a valid name of a client share (reserved part of a pacer's permits).
func (d *decoder) share() (string, error) {
	name, err := d.str("share")
	if err == nil && !capping.IsName(string(name)) {
		err = Invalid("share", "%q is not the name of a share", Clip(name))
	}
	return string(name), err
}

// The method "permits" decodes a number of permits.
func (d *decoder) permits(field string) (int, error) {
	d.skipSpace()
	n, end := number(d.data, d.pos)
	if end < 0 || n > api.MaxPermits {
		return 0, Invalid(field, "%s is not a number of permits (0 to %d)", d.value(), api.MaxPermits)
	}
	d.pos = end
	return int(n), nil
}

// The method "duration" decodes a duration between the arguments "least" and "most", inclusive.
func (d *decoder) duration(field string, least, most time.Duration) (time.Duration, error) {
	if d.peek() != '"' {
		return 0, Invalid(field, "%s is not a string: write a duration such as \"2s\"", d.value())
	}
	text, err := d.str(field)
	if err != nil {
		return 0, err
	}
	value, err := time.ParseDuration(string(text))
	if err != nil || value < least || value > most {
		return 0, Invalid(field, "must be a duration from %s to %s, such as 2s, got %q", capping.Span(least),
			capping.Span(most), Clip(text))
	}
	return value, nil
}
