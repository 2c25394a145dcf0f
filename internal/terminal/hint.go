package terminal

import "errors"

// The type "hinted" is an error with advice for the user.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hinted adds advice for the user to an error. For a nil error, Hinted returns nil.
func Hinted(err error, hint string) error {
	if err == nil {
		return nil
	}
	return hinted{err, hint}
}

// The function Hint returns the latest advice in the error, or "" for an error without advice.
func Hint(err error) string {
	var h hinted
	if errors.As(err, &h) {
		return h.hint
	}
	return ""
}
