package wire

import (
	"capper/client/api"
)

// DecodeAccept strictly decodes the operator's reason for accepting a loss of data.
func DecodeAccept(body []byte, bounds Bounds) (reason string, err error) {
	d := newDecoder(body, bounds, api.AcceptRequest{})
	err = d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		if name != "reason" {
			return d.unknown(name)
		}
		reason, err = d.id("reason", api.MaxReason)
		return err
	})
	if err == nil && reason == "" {
		err = Invalid("reason", "is required: say what was checked (1 to %d bytes)", api.MaxReason)
	}
	return reason, err
}
