// Command segmentbuild builds segments of users from files of user ids, and publishes all segments together as one
// generation in a directory or in S3.
package main

import (
	"os"

	"capper/internal/terminal"
)

func main() {
	ctx, stop := terminal.UntilSignal()
	status := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
