package doctor

import (
	"time"

	"capper/internal/config"
)

// A Subject describes the service and the machine that the doctor checks.
type Subject struct {
	File   string         // path of the configuration file
	Config *config.Config // loaded configuration; nil: the file contains errors
	// Users is the planned number of users, and Sends is the number of sends to each user within the longest window. If
	// Users is 0, the doctor does not check the memory and the disk space for planned users.
	Users int64
	Sends float64
	// Density is the fraction of the numbers between the lowest and the highest user id that are ids of users. The
	// value 0 means 1.
	Density float64
	// If Publisher is true, the doctor also checks the permissions that segmentbuild needs at the location of the
	// segments.
	Publisher bool
	// MaxAge is the maximum age of the segments generation in use. The value 0 means a week.
	MaxAge time.Duration
	// Process is the id of the process whose limits the doctor checks. The value 0 means the process of the doctor.
	Process int
	// Key is an API key for reading the status of a running service. The value "" means no key.
	Key string
	// Clock returns the time of this machine. Nil means time.Now.
	Clock func() time.Time
	// Proc and Cgroups are the directories with information about processes and control groups. The value "" means
	// /proc and /sys/fs/cgroup.
	Proc, Cgroups string
}

func (s *Subject) now() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}

// List returns all checks for a service and its machine. If the configuration file contains errors, List returns only
// the check of the configuration file.
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
