package wire

// DecodeCheck strictly decodes the body of POST /v1/sends/check.
func DecodeCheck(body []byte, bounds Bounds) (*MessageRequest, error) {
	d := newDecoder(body, bounds)
	d.keepsPacked = true
	return d.message(&bodyOfMessage{
		noChannel: "a send without a channel", purpose: "it names the send to look for", other: d.unknown,
	})
}
