//go:build !linux

package cli

import "io"

// outletOf returns nil, because only Linux reports the number of unread bytes in a pipe.
func outletOf(io.Writer) outlet { return nil }
