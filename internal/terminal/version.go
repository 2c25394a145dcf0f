package terminal

import (
	"fmt"

	"capper/internal/version"
)

// VersionCommand is the command `version` of both programs.
type VersionCommand struct {
	JSON bool `name:"json" help:"Print the result as JSON: version, commit, commit_date, go_version and zone_rules (release of the time zone database, such as 2025c)."`
}

// Run prints the version of the program, like the flag --version.
func (c *VersionCommand) Run(on *Streams) error {
	if c.JSON {
		return JSON(on.Out, version.Current())
	}
	_, err := fmt.Fprintln(on.Out, Version(on.Program))
	return err
}

// Version returns the name and the version of the program on one line.
func Version(program string) string { return program + " " + version.Current().String() }
