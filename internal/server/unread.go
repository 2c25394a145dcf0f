package server

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// drainTime is the longest time for which the server discards the unread rest of a request body.
const drainTime = 5 * time.Second

// watchedBody is a request body that remembers whether the server has read all of the body. The field ReadCloser is
// nil if nobody watches the body.
type watchedBody struct {
	io.ReadCloser
	ended bool
}

func (b *watchedBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// watchBody makes the call remember, for the method refuse, whether the server has read the request body. Requests
// without a body need no watching. With HTTP/2, a refusal reaches the client in any case.
func (c *call) watchBody() {
	if c.r.ProtoMajor == 1 && c.r.ContentLength != 0 {
		c.body.ReadCloser = c.r.Body
		c.r.Body = &c.body
	}
}

// The method refuse writes the failure f as the response to c. If the client is still sending the body, refuse returns
// the maximum number of bytes that the server should still read with the method discard. Otherwise, refuse returns 0.
// Many clients read the response only after they have sent the whole body. If the server closed the connection earlier,
// such a client would get a broken connection instead of the response, and repeat the call.
func (s *Server) refuse(c *call, id string, f *wire.Failure) (unread int64) {
	most := drainBytes(s.bounds, f)
	control := http.NewResponseController(c.w)
	// Without full duplex, the body cannot be read after the response.
	if !c.sendsBody() || f.Code == api.CodeTimeout || c.r.ContentLength > most || control.EnableFullDuplex() != nil {
		writeFailure(c.w, id, f)
		return 0
	}
	c.w.Header().Set("Connection", "close")
	writeFailure(c.w, id, f)
	if control.Flush() != nil {
		return 0
	}
	return most
}

// The method discard reads at most n bytes of the request body, for at most drainTime. The connection then ends in any
// case.
func (c *call) discard(n int64) {
	if n > 0 && http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(drainTime)) == nil {
		_, _ = io.CopyN(io.Discard, &c.body, n)
	}
}

// drainBytes returns the number of bytes of a request body that the server discards. If the body is too large, the
// server discards up to four times the permitted size.
func drainBytes(b gate.Bounds, f *wire.Failure) int64 {
	if f.Code == api.CodeTooLarge {
		return 4 * b.BodyBytes
	}
	return b.BodyBytes
}

// sendsBody reports whether the client still sends the request body. A client with the header "Expect: 100-continue"
// sends the body only after the server asks for the body.
func (c *call) sendsBody() bool {
	return c.body.ReadCloser != nil && !c.body.ended && !strings.EqualFold(c.r.Header.Get("Expect"), "100-continue")
}
