// Command capper runs the frequency-capping service and calls its API.
package main

import (
	"os"

	"capper/internal/terminal"
)

func main() {
	ctx, stop := terminal.UntilSignal()
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
