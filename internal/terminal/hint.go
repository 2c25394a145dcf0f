package terminal

import "errors"

// hinted is an error with what its reader can do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hinted adds to an error what its reader can do about it; nil stays nil.
func Hinted(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hinted{err, hint}
}

// Hint is what the reader of an error can do about it: what was added last, ""
// for nothing.
func Hint(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}
