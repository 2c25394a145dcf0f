// Package examine looks whether a Redis server, a master or one that may become
// it, keeps what the store promises: the rights of the store's user, and the
// settings.
package examine

import (
	"cmp"
	"fmt"
	"slices"
	"time"
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
