package cli

import (
	"fmt"
	"strconv"
)

// UserID is a dense user id (32-bit number) on the command line.
type UserID uint32

// UnmarshalText parses a dense user id (32-bit number).
func (u *UserID) UnmarshalText(text []byte) error {
	id, err := strconv.ParseUint(string(text), 10, 32)
	if err != nil {
		return fmt.Errorf("must be a user id from 0 to 4294967295, got %q", text)
	}
	*u = UserID(id)
	return nil
}
