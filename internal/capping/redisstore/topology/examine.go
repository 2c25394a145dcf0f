// Package examine looks whether a Redis server, a master or one that may become
// it, keeps what the store promises: the rights of the store's user, and the
// settings.
package topology

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Rules are what a server has to keep.
type Rules struct {
	Namespace  string // prefix of every key
	Username   string // of the connections; "": the user default
	HashFields int    // of the largest hash that has to stay compact

	Unreplicated      bool // no replica is waited for
	CountedReplicas   bool // how many are waited for is counted
	WithoutAppendOnly bool // the append-only file may be off
	ClockSkew         time.Duration
	Clock             func() time.Time
	ClockApart        bool // somebody else compares the clocks
}

// user is the name of the connections' user.
func (r *Rules) user() string { return cmp.Or(r.Username, "default") }

// Findings are what an examination says.
type Findings struct {
	Refusals []error
	Warnings []string
	Missed   []string // what could not be looked at this time
}

// Survey is what one examination of a server found.
type Survey struct {
	Lacking error // the rights that the store's user lacks: nothing else was examined then; nil: none
	Findings
}

// Survey examines a server, a master or a replica that may become one: the rights of the store's user, then the
// settings. Start-up, each refresh and capper doctor call it, so that all three find the same. An error means that the
// server did not answer; the survey is empty then.
func (r *Rules) Survey(ctx context.Context, client *redis.Client, t Trial) (s Survey, err error) {
	if s.Lacking, err = r.Rights(ctx, client, t); err != nil || s.Lacking != nil {
		return s, err
	}
	return s, r.settings(ctx, client, &s.Findings, t.Who)
}

// Judged returns the findings of the survey. A lacking right is a refusal.
func (s *Survey) Judged() Findings {
	if s.Lacking != nil {
		return Findings{Refusals: []error{s.Lacking}}
	}
	return s.Findings
}

// Refuse adds what breaks a promise.
func (f *Findings) Refuse(format string, args ...any) {
	f.Refusals = append(f.Refusals, fmt.Errorf(format, args...))
}

// Warn adds what only costs memory or cannot be seen.
func (f *Findings) Warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Miss adds what could not be looked at this time.
func (f *Findings) Miss(format string, args ...any) {
	f.Missed = append(f.Missed, fmt.Sprintf(format, args...))
}

// All are the warnings and what could not be looked at.
func (f *Findings) All() []string { return slices.Concat(f.Warnings, f.Missed) }

// Add adds all of more.
func (f *Findings) Add(more Findings) {
	f.Refusals = append(f.Refusals, more.Refusals...)
	f.Warnings = append(f.Warnings, more.Warnings...)
	f.Missed = append(f.Missed, more.Missed...)
}
