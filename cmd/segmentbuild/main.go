// Command segmentbuild builds segments of users from raw ids and publishes them as one generation to a directory or
// to S3.
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
