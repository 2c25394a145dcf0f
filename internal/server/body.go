package server

import (
	"bytes"
	"errors"
	"io"

	"capper/internal/server/gate"
)

// A Body is a received request body, together with the memory that the body occupies in the budget for all request
// bodies.
type Body struct {
	Data []byte
	hold *gate.Hold
}

// The method fill reads all bytes from r into Data. The argument r returns at most "limit" bytes.
func (b *Body) fill(r io.Reader, limit int64) error {
	for {
		if len(b.Data) == cap(b.Data) {
			if err := b.enlarge(limit); err != nil {
				return err
			}
		}
		n, err := r.Read(b.Data[len(b.Data):cap(b.Data)])
		b.Data = b.Data[:len(b.Data)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// The method enlarge moves the received bytes of a request body to a larger buffer. The larger buffer may exceed the
// argument "limit" slightly, so that the next read can detect the end of the body.
func (b *Body) enlarge(limit int64) error {
	size := gate.NextSize(cap(b.Data), limit+bytes.MinRead)
	if !b.hold.Grow(size) {
		return gate.ErrTooManyBytes()
	}
	old := b.Data
	b.Data = append(gate.NewBuffer(size), old...)
	gate.PutBuffer(old)
	b.hold.Settle(int64(cap(b.Data)))
	return nil
}

// Reserve takes n more bytes from the budget for request bodies, for data that is decoded from the request body.
func (b *Body) Reserve(n int64) error {
	if !b.hold.Grow(n) {
		return gate.ErrTooManyBytes()
	}
	return nil
}

// KeepUsers keeps the given number of bytes for the decoded users, and gives the other memory of the request body back
// to the budget.
func (b *Body) KeepUsers(bytes int64) {
	gate.PutBuffer(b.Data)
	b.Data = nil
	b.hold.Settle(bytes)
}

// Close gives the remaining memory of the request body back to the budget. A second Close has no effect.
func (b *Body) Close() {
	gate.PutBuffer(b.Data)
	b.Data = nil
	b.hold.Close()
}
