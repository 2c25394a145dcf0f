// Command segmentbuild builds segments and sets of users from files of user ids. The command publishes all segments and
// sets together as one generation (published version) in a directory or in S3.
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
