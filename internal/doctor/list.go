package doctor

import (
	"time"

	"capper/internal/config"
)

// Subject is the service and the machine that the doctor checks.
type Subject struct {
	File   string         // the configuration file
	Config *config.Config // the configuration; nil: it has faults
	// Users and Sends are the planned number of users, and the number of sends to each user within the longest
	// window. With 0 users the doctor computes no headroom.
	Users int64
	Sends float64
	// Density is the share of user ids that are in use; 0 means 1.
	Density float64
	// Publisher also checks the rights that segmentbuild needs at the source of the segments.
	Publisher bool
	// MaxAge is the highest age of the live generation; 0 means a week.
	MaxAge time.Duration
	// Process is the id of the process whose limits are checked; 0 means this process.
	Process int
	// Key is an API key for the status of a running service; "" means no key.
	Key string
	// Clock returns the time of this machine; nil means time.Now.
	Clock func() time.Time
	// Proc and Cgroups are the directories with data about processes and their memory; "" means /proc and
	// /sys/fs/cgroup.
	Proc, Cgroups string
}

func (s *Subject) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// List returns all checks for the subject. If the configuration has faults, it returns only the checks of the
// configuration.
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
