//go:build !linux

package cli

import "io"

// outletOf returns nil: only Linux tells a writer how much of a pipe is unread.
func outletOf(io.Writer) outlet { return nil }
