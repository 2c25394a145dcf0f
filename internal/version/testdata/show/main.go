// Show prints what the package says of the build, for its test.
package main

import (
	"encoding/json"
	"os"

	"capper/internal/version"
)

func main() {
	if json.NewEncoder(os.Stdout).Encode(version.Current()) != nil {
		os.Exit(1)
	}
}
