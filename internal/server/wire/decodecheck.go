package wire

// Check reads a body strictly.
func DecodeCheck(body []byte, bounds Bounds) (*MessageRequest, error) {
	d := newDecoder(body, bounds)
	return d.message(&bodyOfMessage{
		noChannel: "a send without a channel", purpose: "it names the send to look for", other: d.unknown,
	})
}
