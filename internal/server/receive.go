package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"capper/client/api"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// A receiver receives the request bodies of calls.
type receiver struct {
	Bounds  gate.Bounds
	Budgets *gate.Budgets
	Remedy  string // advice in the error text for a body that is too large
}

// refuseEarly checks the request header, and may refuse the call before the server reads the body. The method
// refuseEarly refuses a body with a wrong size or content type. The method refuseEarly also refuses a call if a budget
// is exhausted and the client already holds its whole share of the budget.
func (rc *receiver) refuseEarly(r *http.Request, holder string) error {
	if err := checkMedia(r); err != nil {
		return err
	}
	if r.ContentLength > rc.Bounds.BodyBytes {
		return rc.tooLarge()
	}
	return rc.Budgets.Refuse(holder, r.ContentLength)
}

// Read first receives the whole body of a call, and then decompresses it. The memory for a body grows with the received
// bytes. An incomplete body therefore costs only the memory of the received part. The caller of Read must close the
// body that Read returned. After an error, the returned body is nil.
func (rc *receiver) Read(w http.ResponseWriter, r *http.Request, holder string) (*Body, error) {
	b := &Body{hold: rc.Budgets.Bodies.Open(holder)}
	if err := rc.read(w, r, holder, b); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (rc *receiver) read(w http.ResponseWriter, r *http.Request, holder string, b *Body) error {
	if err := rc.refuseEarly(r, holder); err != nil {
		return err
	}
	if err := rc.receive(w, r, b); err != nil {
		return err
	}
	if strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		return rc.inflate(b)
	}
	return nil
}

// The method receive reads the bytes of a request body without decompressing them.
func (rc *receiver) receive(w http.ResponseWriter, r *http.Request, b *Body) error {
	if r.ContentLength == 0 {
		return nil
	}
	pace := gate.BodyPace(w, rc.Bounds.MinRate)
	defer pace.Done()
	if !b.hold.AllowCut(pace.Cut) {
		return gate.ErrTooManyBytes()
	}
	defer b.hold.AllowCut(nil)
	err := b.fill(pace.Reader(http.MaxBytesReader(w, r.Body, rc.Bounds.BodyBytes)), rc.Bounds.BodyBytes)
	if err == nil || errors.As(err, new(*wire.Failure)) {
		return err
	}
	if b.hold.WasCut() {
		return gate.ErrTooManyBytes()
	}
	return rc.readFailure(w, r, err)
}

func (rc *receiver) tooLarge() *wire.Failure {
	return wire.NewFailure(
		api.CodeTooLarge,
		"the body is larger than the maximum of %d bytes, or more than %d times as large as its compressed form: %s",
		rc.Bounds.BodyBytes,
		rc.Bounds.GzipRatio,
		rc.Remedy,
	)
}

func (rc *receiver) readFailure(w http.ResponseWriter, r *http.Request, err error) *wire.Failure {
	if tooMany := (*http.MaxBytesError)(nil); errors.As(err, &tooMany) {
		return rc.tooLarge()
	}
	f := wire.NewFailure(api.CodeInvalidRequest, "the body could not be read completely")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = wire.NewFailure(api.CodeTimeout, "the body arrived too slowly: "+
			"after the first %s, at least %d bytes must arrive per second",
			gate.GraceTime, rc.Bounds.MinRate)
	case errors.Is(err, io.ErrUnexpectedEOF):
		f = wire.NewFailure(api.CodeTimeout, "the connection ended before the end of the body")
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	f.Cause = err
	return f
}
