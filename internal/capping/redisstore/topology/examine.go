package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Rules are the requirements that every Redis server has to meet.
type Rules struct {
	Namespace  string // prefix of every key
	Username   string // user of the connections; "": the user "default"
	HashFields int    // number of fields of the largest hash that Redis must keep in its compact encoding

	Unreplicated      bool // sends need no confirmation by a replica
	CountedReplicas   bool // the store itself counts how many replicas must confirm
	WithoutAppendOnly bool // the append-only file may be off
	ClockSkew         time.Duration
	Clock             func() time.Time
	ClockApart        bool // other code compares the clocks
}

// user returns the user name of the connections.
func (r *Rules) user() string { return cmp.Or(r.Username, "default") }

// Findings are the results of an examination of a server's settings and rights.
type Findings struct {
	Refusals []error
	Warnings []string
	Missed   []string // names of checks that could not be made this time
}

// Survey is the result of one examination of a server's settings and rights.
type Survey struct {
	Lacking error // the missing rights of the store's Redis user, because of which the examination ended; nil: none
	Findings
}

// Survey examines a server: first the rights of the store's Redis user, then the settings. Start-up, later examinations
// and `capper doctor` all call Survey, so that all three apply the same rules. Survey returns an error if the server
// did not answer. If the server did not answer, the returned Survey is empty.
func (r *Rules) Survey(ctx context.Context, client *redis.Client, t Trial) (s Survey, err error) {
	if s.Lacking, err = r.Rights(ctx, client, t); err != nil || s.Lacking != nil {
		return s, err
	}
	return s, r.settings(ctx, client, &s.Findings, t.Who)
}

// Judged returns the findings of the examination, in which missing rights are a refusal.
func (s *Survey) Judged() Findings {
	if s.Lacking != nil {
		return Findings{Refusals: []error{s.Lacking}}
	}
	return s.Findings
}

// Refuse adds a finding about a setting that breaks a promise of the store.
func (f *Findings) Refuse(format string, args ...any) {
	f.Refusals = append(f.Refusals, fmt.Errorf(format, args...))
}

// Warn adds a finding that breaks no promise, such as a setting that costs memory.
func (f *Findings) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Miss adds the description of a check that could not be made this time.
func (f *Findings) Miss(format string, args ...any) {
	f.Missed = append(f.Missed, fmt.Sprintf(format, args...))
}

// All returns the warnings, and the descriptions of the checks that could not be made.
func (f *Findings) All() []string { return slices.Concat(f.Warnings, f.Missed) }

// Add appends the findings of more.
func (f *Findings) Add(more Findings) {
	f.Refusals = append(f.Refusals, more.Refusals...)
	f.Warnings = append(f.Warnings, more.Warnings...)
	f.Missed = append(f.Missed, more.Missed...)
}
