package server

import (
	"bytes"
	"errors"
	"io"

	"capper/internal/server/gate"
)

// Body is a request body as it comes in, and what the call holds of the budget
// of bodies for it.
type Body struct {
	Data []byte
	hold *gate.Hold
}

// fill reads all of r, of which there are at most limit bytes.
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

// enlarge moves the bytes to a larger buffer; a little more than limit has room
// to end in.
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

// Reserve makes sure of n bytes more for what is made of the body.
func (b *Body) Reserve(n int64) error {
	if !b.hold.Grow(n) {
		return gate.ErrTooManyBytes()
	}
	return nil
}

// KeepUsers gives back all but the memory of so many users, which were read from
// the body.
func (b *Body) KeepUsers(users int) {
	gate.PutBuffer(b.Data)
	b.Data = nil
	b.hold.Settle(int64(users) * 4)
}

// Close gives back what is held still. A second time does nothing.
func (b *Body) Close() {
	gate.PutBuffer(b.Data)
	b.Data = nil
	b.hold.Close()
}
