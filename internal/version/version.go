package version

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"capper/internal/zones"
)

// The variables version, commit and date describe the build of the program. The linker sets these variables, and no
// code changes them.
var version, commit, date string

// Unknown is the text for a value that the build does not contain, for example after a build outside a checkout.
const Unknown = "unknown"

// A Build describes the build of a program: version, commit, date and toolchain.
type Build struct {
	Version string `json:"version"`     // a tag such as v1.2.3, or a pseudo-version that names the commit
	Commit  string `json:"commit"`      // full hash of the commit, or Unknown
	Date    string `json:"commit_date"` // time of the commit, RFC 3339 in UTC, or Unknown
	Go      string `json:"go_version"`  // version of the Go toolchain
	Zones   string `json:"zone_rules"`  // release of the IANA database of time zones, such as 2025c
}

// Current returns the build of the running program.
func Current() Build {
	info, _ := debug.ReadBuildInfo() // nil: built without modules
	return of(Build{Version: version, Commit: commit, Date: date, Go: runtime.Version(), Zones: zones.Version()}, info)
}

// The function "of" returns a copy of the argument "b". Missing values in the copy come from the build information that
// Go stores in the program.
func of(b Build, info *debug.BuildInfo) Build {
	if info != nil {
		fill(&b.Version, info.Main.Version)
		for _, setting := range info.Settings {
			switch setting.Key {
			case "vcs.revision":
				fill(&b.Commit, setting.Value)
			case "vcs.time":
				fill(&b.Date, setting.Value)
			}
		}
	}
	for _, field := range []*string{&b.Version, &b.Commit, &b.Date} {
		fill(field, Unknown)
	}
	return b
}

func fill(field *string, text string) {
	if *field == "" {
		*field = text
	}
}

// String returns the description of the build on one line, such as "v1.2.3 (commit 1f0c…, 2026-11-20T09:12:44Z,
// go1.26.0, zone rules 2025c)".
func (b Build) String() string {
	return fmt.Sprintf("%s (commit %s, %s, %s, zone rules %s)", b.Version, b.Commit, b.Date, b.Go, b.Zones)
}
