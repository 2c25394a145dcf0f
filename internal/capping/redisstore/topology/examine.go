package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Rules are the requirements that every Redis server of the store must meet.
type Rules struct {
	Namespace  string // prefix of every key
	Username   string // user of the connections; "": the user "default"
	HashFields int    // number of fields of the largest hash that Redis must keep in its compact encoding

	Unreplicated      bool // sends need no confirmation by a replica
	CountedReplicas   bool // the store itself determines the number of replicas that must confirm
	WithoutAppendOnly bool // the append-only file may be off
	ClockSkew         time.Duration
	Clock             func() time.Time
	ClockApart        bool // other code compares the clocks
}

// The method "user" returns the user name of the connections.
func (r *Rules) user() string { return cmp.Or(r.Username, "default") }

// Findings are the results of an examination of a server's settings and rights.
type Findings struct {
	Refusals []error
	Warnings []string
	Missed   []string // names of checks that could not be made this time
}

// A Survey is the result of one examination of a server: its settings, and the rights of the store's Redis user.
type Survey struct {
	Lacking error // missing rights of the store's Redis user, which ended the examination; nil: none
	Findings
}

// The method Survey examines a server: first the rights of the store's Redis user, and then the settings. The start of
// the store, later examinations and `capper doctor` call Survey, so that the same rules apply everywhere. If the server
// did not answer, Survey returns an error.
func (r *Rules) Survey(ctx context.Context, client *redis.Client, t Trial) (s Survey, err error) {
	if s.Lacking, err = r.Rights(ctx, client, t); err != nil || s.Lacking != nil {
		return s, err
	}
	return s, r.settings(ctx, client, &s.Findings, t.Who)
}

// The method Judged returns the findings of the examination. Missing rights of the store's Redis user are a reason to
// refuse the server.
func (s *Survey) Judged() Findings {
	if s.Lacking != nil {
		return Findings{Refusals: []error{s.Lacking}}
	}
	return s.Findings
}

// The method Refuse adds a finding that forces the store to reject the server: a setting that breaks a promise.
func (f *Findings) Refuse(format string, args ...any) {
	f.Refusals = append(f.Refusals, fmt.Errorf(format, args...))
}

// The method Warn adds a finding that leads only to a warning of the store, such as a setting that costs memory.
func (f *Findings) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// The method Miss adds a finding about a check that could not be made this time.
func (f *Findings) Miss(format string, args ...any) {
	f.Missed = append(f.Missed, fmt.Sprintf(format, args...))
}

// The method All returns the texts of all warnings and of all checks that could not be made.
func (f *Findings) All() []string { return slices.Concat(f.Warnings, f.Missed) }

// The method Add appends the findings in the argument "more".
func (f *Findings) Add(more Findings) {
	f.Refusals = append(f.Refusals, more.Refusals...)
	f.Warnings = append(f.Warnings, more.Warnings...)
	f.Missed = append(f.Missed, more.Missed...)
}
