package server

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"capper/client/api"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// inflatedFree is the number of decompressed bytes that the server accepts for every gzip body, whatever its compressed
// size is. If the decompressed body has more than inflatedFree bytes, it must not exceed inflatedFree plus
// Bounds.GzipRatio times the size of the compressed body.
const inflatedFree = 4 << 20

// The method inflate replaces the bytes of a request body that was compressed with gzip by the decompressed bytes.
func (rc *receiver) inflate(b *Body) error {
	sent := b.Data
	defer func() { gate.PutBuffer(sent) }()
	reader, err := gzip.NewReader(bytes.NewReader(sent))
	if err != nil {
		b.Data = nil
		return notGzip(err)
	}
	limit := min(rc.Bounds.BodyBytes, inflatedFree+int64(rc.Bounds.GzipRatio)*int64(len(sent)))
	plain := &Body{hold: b.hold.Another()}
	defer plain.hold.Close()
	err = plain.fill(&boundedReader{reader, limit}, limit)
	b.Data = plain.Data
	b.hold.Settle(plain.hold.Size())
	switch {
	case errors.Is(err, errBeyond):
		return rc.tooLarge()
	case errors.As(err, new(*wire.Failure)):
		return err
	case err != nil:
		return notGzip(err)
	}
	return nil
}

func notGzip(cause error) *wire.Failure {
	f := wire.NewFailure(api.CodeInvalidRequest, "the body is not valid gzip, although Content-Encoding is gzip")
	if errors.Is(cause, io.ErrUnexpectedEOF) {
		f.Message = "the gzip body ends early"
	}
	f.Cause = cause
	return f
}

var errBeyond = errors.New("the decompressed request body has more bytes than allowed")

// boundedReader reads from another reader, and returns an error as soon as that reader has returned more than "left"
// bytes.
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
