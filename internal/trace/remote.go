package trace

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// The headers of the W3C's Trace Context, in the letters of http.Header.
const (
	parentHeader = "Traceparent"
	stateHeader  = "Tracestate"
)

// maxState is the most bytes of tracestate that are passed on.
const maxState = 512

// Remote is the span of a caller that a request is a part of, as its headers tell. The zero
// value is that there is none.
type Remote struct {
	Parent string // traceparent, valid; "": none
	State  string // tracestate; "": none
}

// Incoming is what the headers of a request tell. A malformed traceparent is none, and so
// is a second one; tracestate is nothing without it.
func Incoming(h http.Header) Remote {
	given := h[parentHeader]
	if len(given) != 1 || !validParent(given[0]) {
		return Remote{}
	}
	state := strings.Join(h[stateHeader], ",")
	if len(state) > maxState {
		state = ""
	}
	return Remote{given[0], state}
}

// Sampled reports whether the caller records the trace.
func (r Remote) Sampled() bool {
	_, _, flags := r.IDs()
	return flags&1 == 1
}

// IDs are those of the trace and of the caller's span, and its flags; zero: there is none.
func (r Remote) IDs() (trace [16]byte, span [8]byte, flags byte) {
	if r.Parent == "" {
		return trace, span, 0
	}
	raw, _ := hex.DecodeString(strings.ReplaceAll(r.Parent[:55], "-", "")) // it is valid
	copy(trace[:], raw[1:17])
	copy(span[:], raw[17:25])
	return trace, span, raw[25]
}

// validParent reports whether the text is version-trace-parent-flags, in lower-case
// hexadecimal digits, with a trace and a parent other than 0. A later version may have more behind.
func validParent(text string) bool {
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return false
	}
	version, trace, parent, flags := text[:2], text[3:35], text[36:52], text[53:55]
	if version == "00" && len(text) != 55 || version == "ff" || len(text) > 55 && text[55] != '-' ||
		len(text) > maxState {
		return false
	}
	return hexadecimal(version) && hexadecimal(trace) && hexadecimal(parent) && hexadecimal(flags) &&
		strings.Trim(trace, "0") != "" && strings.Trim(parent, "0") != ""
}

func hexadecimal(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Outgoing sets the headers of a request that is made for what the context belongs to: of
// its span; where that is not recorded, those that came in; and where the service records
// others and not this one, that nobody is to.
func Outgoing(ctx context.Context, h http.Header) {
	at := of(ctx)
	if at == nil {
		return
	}
	on := at.remote
	switch {
	case at.span != nil:
		on = at.span.recorder.Remote()
	case on.Parent == "" && at.unsampled:
		on.Parent = unsampledParent()
	}
	if on.Parent == "" {
		return
	}
	h[parentHeader] = []string{on.Parent}
	delete(h, stateHeader)
	if on.State != "" {
		h[stateHeader] = []string{on.State}
	}
}

// unsampledParent is that of a new trace, which nobody records.
func unsampledParent() string {
	var raw [24]byte
	for i := range raw {
		raw[i] = byte(rand.Uint32())
	}
	raw[0], raw[16] = raw[0]|1, raw[16]|1 // neither is 0
	return "00-" + hex.EncodeToString(raw[:16]) + "-" + hex.EncodeToString(raw[16:]) + "-00"
}
