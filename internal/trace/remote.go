package trace

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// These are the headers of the W3C's Trace Context, in the spelling of http.Header.
const (
	parentHeader = "Traceparent"
	stateHeader  = "Tracestate"
)

// maxState is the most bytes of the tracestate header that are passed on.
const maxState = 512

// Remote identifies the caller's span, from the headers of a request. The zero value means that the caller sent no
// span.
type Remote struct {
	Parent string // traceparent, valid; "": none
	State  string // tracestate; "": none
}

// Incoming reads the caller's span from the headers of a request. Incoming ignores a malformed traceparent and
// requests with two of them. Incoming ignores tracestate without a traceparent.
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

// IDs returns the ids of the trace and of the caller's span, and the flags. All are zero if the caller sent no span.
func (r Remote) IDs() (trace [16]byte, span [8]byte, flags byte) {
	if r.Parent == "" {
		return trace, span, 0
	}
	raw, _ := hex.DecodeString(strings.ReplaceAll(r.Parent[:55], "-", "")) // the text was checked before
	copy(trace[:], raw[1:17])
	copy(span[:], raw[17:25])
	return trace, span, raw[25]
}

// validParent reports whether the text has the form version-trace-parent-flags in lower-case hexadecimal digits. The
// ids of trace and parent must not be 0. Later versions may have further fields.
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

// Outgoing sets the trace headers of a request to another service. If the context's span is recorded, the headers
// name that span; otherwise Outgoing passes on the headers that came in. If the service traces and did not select
// this request, the headers tell the other service not to record it.
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

// unsampledParent returns the traceparent header of a new trace that nobody records.
func unsampledParent() string {
	var raw [24]byte
	for i := range raw {
		raw[i] = byte(rand.Uint32())
	}
	raw[0], raw[16] = raw[0]|1, raw[16]|1 // neither is 0
	return "00-" + hex.EncodeToString(raw[:16]) + "-" + hex.EncodeToString(raw[16:]) + "-00"
}
