// Command show prints the build information of package version, for the package's test.
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
