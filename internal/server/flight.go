package server

import (
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flight counts what is being worked on, up to a bound.
type flight struct {
	bound int64
	now   atomic.Int64
}

// enter adds n. What alone is beyond the bound may enter when nothing else is
// in flight.
func (f *flight) enter(n int64) bool {
	if after := f.now.Add(n); after > f.bound && after != n {
		f.now.Add(-n)
		return false
	}
	return true
}

func (f *flight) leave(n int64) { f.now.Add(-n) }

// overloaded is the failure of a call beyond the bounds of all calls together.
func overloaded(what string) *failure {
	f := fail(CodeOverloaded, "%s: try again", what)
	f.retryAfter = time.Second
	return f
}

// buffers are the bodies and answers of calls.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

// newBuffer is an empty buffer; done puts it back.
func newBuffer() (b *[]byte, done func()) {
	b = buffers.Get().(*[]byte)
	return b, func() {
		*b = (*b)[:0]
		buffers.Put(b)
	}
}

// readBody reads the whole body into a buffer of the pool, which the caller
// puts back. Bodies count as in flight while they come in and until release.
func (s *Server) readBody(c *call) (body *[]byte, release func(), err error) {
	if err := checkMedia(c.r); err != nil {
		return nil, nil, err
	}
	if c.r.ContentLength > s.bounds.BodyBytes {
		return nil, nil, s.tooLarge()
	}
	var reader io.Reader = http.MaxBytesReader(c.w, c.r.Body, s.bounds.BodyBytes)
	if strings.EqualFold(c.r.Header.Get("Content-Encoding"), "gzip") {
		if reader, err = gzip.NewReader(reader); err != nil {
			return nil, nil, s.readFailure(err)
		}
	}
	body, done := newBuffer()
	held := int64(0)
	release = func() {
		s.bytes.leave(held)
		done()
	}
	for {
		if len(*body) == cap(*body) {
			*body = append(*body, 0)[:len(*body)]
		}
		n, err := reader.Read((*body)[len(*body):cap(*body)])
		*body = (*body)[:len(*body)+n]
		if !s.bytes.enter(int64(n)) {
			release()
			return nil, nil, overloaded("too many bytes of requests are in flight")
		}
		held += int64(n)
		switch {
		case int64(len(*body)) > s.bounds.BodyBytes:
			release()
			return nil, nil, s.tooLarge()
		case errors.Is(err, io.EOF):
			return body, release, nil
		case err != nil:
			release()
			return nil, nil, s.readFailure(err)
		}
	}
}

func (s *Server) tooLarge() *failure {
	return fail(CodeTooLarge, "the body is larger than %d bytes, the most that is taken (after decompression): split the batch", s.bounds.BodyBytes)
}

func (s *Server) readFailure(err error) *failure {
	if tooMany := (*http.MaxBytesError)(nil); errors.As(err, &tooMany) {
		return s.tooLarge()
	}
	f := fail(CodeInvalidRequest, "the body could not be read whole")
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		f.Message = "the body is not gzip, as its Content-Encoding says"
	}
	f.cause = err
	return f
}

// checkMedia refuses bodies that say they are something other than JSON in
// UTF-8, plain or as gzip.
func checkMedia(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	if charset, ok := params["charset"]; err != nil || media != "application/json" || ok && !strings.EqualFold(charset, "utf-8") {
		return fail(CodeUnsupportedMedia, "Content-Type is %q: application/json is expected", clip([]byte(given)))
	}
	encodings := r.Header.Values("Content-Encoding")
	if len(encodings) > 1 || len(encodings) == 1 && !takenEncoding(encodings[0]) {
		return fail(CodeUnsupportedMedia, "Content-Encoding is %q: only gzip, once, is taken",
			clip([]byte(strings.Join(encodings, ", "))))
	}
	return nil
}

// takenEncoding reports whether bodies may come in the content coding, whose
// name has no case.
func takenEncoding(coding string) bool {
	return strings.EqualFold(coding, "gzip") || strings.EqualFold(coding, "identity")
}
