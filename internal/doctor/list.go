// Package checks is what the doctor looks at, a file for each room: the configuration and its
// files, certificates, the segments' source and their cache, the audit's place, the traces' collector, clocks, Redis,
// the embedded store, and the limits of the process. List names them in the order of the report.
//
// Whoever adds a check adds a function that returns a ops.Check, and a line in List. What start-up
// examines too is asked of the code that start-up asks (packages app, config, examine).
package doctor

import (
	"time"

	"capper/internal/config"
)

// Subject is what the doctor looks at.
type Subject struct {
	File   string         // the configuration file
	Config *config.Config // what it holds; nil: it has faults
	// Users and Sends are what there must be room for: so many users, of each so many sends
	// within the longest window. 0 users: no headroom is worked out.
	Users int64
	Sends float64
	// Density is the share of user ids that are in use; 0: 1.
	Density float64
	// Publisher: also try the rights that segmentbuild needs at the segments' source.
	Publisher bool
	// MaxAge is how old the live generation may be; 0: a week.
	MaxAge time.Duration
	// Process is the number of the process whose limits count; 0: this one.
	Process int
	// Key is an API key with which a running service may be asked for its status; "": none.
	Key string
	// Clock is this machine's; nil: time.Now.
	Clock func() time.Time
	// Proc and Cgroups are where the system tells of processes and their memory; "": /proc and /sys/fs/cgroup.
	Proc, Cgroups string
}

func (s *Subject) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// List is every check of the subject. Where the configuration has faults, only these can be told.
func List(s *Subject) []check {
	checks := []check{configuration(s)}
	if s.Config == nil {
		return checks
	}
	checks = append(checks, secrets(s), listeners(s), keys(s), ownCertificate(s))
	checks = append(checks, segmentsChecks(s)...)
	checks = append(checks, auditPlace(s), tracing(s), s3Clock(s))
	if s.Config.Store.Kind == config.Redis {
		checks = append(checks, redisChecks(s)...)
	} else {
		checks = append(checks, embeddedChecks(s)...)
	}
	if s.noProcess() {
		return append(checks, absent(s), pacers(s))
	}
	return append(checks, openFiles(s), memory(s), processors(s), pacers(s))
}
