package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
)

// body is a request body as it comes in, and what the call holds of the budget
// of bodies for it.
type body struct {
	data []byte
	hold *hold
}

// overloaded is the failure of a call beyond the bounds of all calls together.
func overloaded(what string) *failure {
	f := fail(CodeOverloaded, "%s: try again", what)
	f.retryAfter = time.Second
	return f
}

func errTooManyBytes() *failure { return overloaded("too many bytes of requests are in flight") }

// refuseEarly answers by the header alone: what would be refused for its size,
// its kind, or because the service is short of something and this client holds
// its share, is refused before its body is read.
func (s *Server) refuseEarly(c *call) error {
	if err := checkMedia(c.r); err != nil {
		return err
	}
	announced := c.r.ContentLength
	switch {
	case announced > s.bounds.BodyBytes:
		return s.tooLarge()
	case s.bodies.refuses(c.holder, max(announced, smallestBuffer)):
		return errTooManyBytes()
	case s.users.refuses(c.holder, 1):
		return errTooManyUsers()
	case s.answers.refuses(c.holder, 1):
		return errTooManyAnswers()
	}
	return nil
}

// readBody reads the whole body, and inflates it when all of it is there: what
// a sender leaves unfinished costs no more than what was sent. The caller
// closes the body, also with an error.
func (s *Server) readBody(c *call) (*body, error) {
	b := &body{hold: s.bodies.open(c.holder)}
	if err := s.refuseEarly(c); err != nil {
		return b, err
	}
	if err := s.receive(c, b); err != nil {
		return b, err
	}
	if strings.EqualFold(c.r.Header.Get("Content-Encoding"), "gzip") {
		return b, s.inflate(b)
	}
	return b, nil
}

// receive reads the body as it was sent.
func (s *Server) receive(c *call, b *body) error {
	if c.r.ContentLength == 0 {
		return nil
	}
	pace := s.newPace(c)
	defer pace.done()
	if !b.hold.cuttable(pace.cut) {
		return errTooManyBytes()
	}
	defer b.hold.cuttable(nil)
	err := b.fill(&pacedReader{http.MaxBytesReader(c.w, c.r.Body, s.bounds.BodyBytes), pace}, s.bounds.BodyBytes)
	if err == nil || errors.As(err, new(*failure)) {
		return err
	}
	if b.hold.wasCut() {
		return errTooManyBytes()
	}
	return s.readFailure(c, err)
}

// fill reads all of r, of which there are at most limit bytes.
func (b *body) fill(r io.Reader, limit int64) error {
	for {
		if len(b.data) == cap(b.data) {
			if err := b.enlarge(limit); err != nil {
				return err
			}
		}
		n, err := r.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// enlarge moves the bytes to a larger buffer; a little more than limit has room
// to end in.
func (b *body) enlarge(limit int64) error {
	size := nextSize(cap(b.data), limit+bytes.MinRead)
	if !b.hold.grow(size) {
		return errTooManyBytes()
	}
	old := b.data
	b.data = append(newBuffer(size), old...)
	putBuffer(old)
	b.hold.settle(int64(cap(b.data)))
	return nil
}

// The ratio that gzip may have: inflatedFree bytes in any case, beyond them
// Bounds.GzipRatio times what was sent.
const inflatedFree = 4 << 20

// inflate replaces the body by what it is the gzip of.
func (s *Server) inflate(b *body) error {
	sent := b.data
	defer func() { putBuffer(sent) }()
	reader, err := gzip.NewReader(bytes.NewReader(sent))
	if err != nil {
		b.data = nil
		return notGzip(err)
	}
	limit := min(s.bounds.BodyBytes, inflatedFree+int64(s.bounds.GzipRatio)*int64(len(sent)))
	plain := &body{hold: b.hold.of.open(b.hold.client)}
	defer plain.hold.close()
	err = plain.fill(&boundedReader{reader, limit}, limit)
	b.data = plain.data
	b.hold.settle(plain.hold.n)
	switch {
	case errors.Is(err, errBeyond):
		return s.tooLarge()
	case errors.As(err, new(*failure)):
		return err
	case err != nil:
		return notGzip(err)
	}
	return nil
}

func notGzip(cause error) *failure {
	f := fail(CodeInvalidRequest, "the body is not gzip, as its Content-Encoding says")
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		f.Message = "the body is gzip that ends early"
	}
	f.cause = cause
	return f
}

var errBeyond = errors.New("more bytes than are taken")

// boundedReader fails once more than left bytes have been read.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errBeyond
	}
	return n, err
}

// room makes sure of n bytes more for what is made of the body.
func (b *body) room(n int64) error {
	if !b.hold.grow(n) {
		return errTooManyBytes()
	}
	return nil
}

// decoded gives back all but what the audience takes.
func (b *body) decoded(a *audience) {
	putBuffer(b.data)
	b.data = nil
	b.hold.settle(int64(len(a.users)) * 4)
}

func (b *body) close() {
	putBuffer(b.data)
	b.data = nil
	b.hold.close()
}

func (s *Server) tooLarge() *failure {
	return fail(CodeTooLarge, "the body is larger than %d bytes, the most that is taken (after decompression, which may give %d times what was sent): split the batch",
		s.bounds.BodyBytes, s.bounds.GzipRatio)
}

func (s *Server) readFailure(c *call, err error) *failure {
	if tooMany := (*http.MaxBytesError)(nil); errors.As(err, &tooMany) {
		return s.tooLarge()
	}
	f := fail(CodeInvalidRequest, "the body could not be read whole")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = fail(CodeTimeout, "the body came too slowly: after the first %s it must come at %d bytes a second",
			graceTime, s.bounds.MinRate)
	case errors.Is(err, io.ErrUnexpectedEOF):
		f = fail(CodeTimeout, "the body broke off before its end")
	}
	if c.r.ProtoMajor == 1 {
		c.w.Header().Set("Connection", "close")
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
