// Command capper serves the frequency-capping API, and calls it.
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
