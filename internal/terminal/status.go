package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status is the exit status of a command. Each exit status has the same meaning in all programs of this project. The
// page docs/commands.md describes the exit statuses.
type Status int

// These constants are the exit statuses of all programs.
const (
	Done      Status = iota // success, or nothing to do
	Failure                 // a retry or other permissions may help
	Usage                   // the program or the service rejected the arguments
	BadInput                // an input file or stream is missing or contains errors
	Undecided               // the store left users undecided, or segments overlap
	Refused                 // the guard rejected the publish
	LostRace                // another process published first
	OnHold                  // publishing is on hold
	Findings                // a check has findings
)

// The variable "meanings" contains the texts of the exit statuses in `--help`.
var meanings = [...]string{
	Done: "done", Failure: "failure", Usage: "usage", BadInput: "bad input", Undecided: "users left undecided",
	Refused: "refused by the guard", LostRace: "another process published first", OnHold: "publishing is on hold",
	Findings: "findings",
}

// The function "describe" returns the help text about exit statuses. The text contains all statuses up to the argument
// "last", and the statuses in the argument "beyond". The argument "more" contains additional texts for some statuses.
func describe(last Status, beyond []Status, more map[Status]string) string {
	var list []string
	for status := Done; status <= Findings; status++ {
		if status > last && !slices.Contains(beyond, status) {
			continue
		}
		text := fmt.Sprintf("%d %s", status, meanings[status])
		if more[status] != "" {
			text += " (" + more[status] + ")"
		}
		list = append(list, text)
	}
	return "Exit status: " + strings.Join(list, ", ") + "."
}

// The type "failed" is an error together with an exit status.
type failed struct {
	error
	status Status
}

func (f failed) Unwrap() error { return f.error }

// WithStatus sets the exit status with which the program ends because of an error. For a nil error, WithStatus returns
// nil. If WithStatus has set several exit statuses for an error, the last status applies.
func WithStatus(status Status, err error) error {
	if err == nil {
		return nil
	}
	return failed{err, status}
}

// The function Misuse sets the exit status for wrong usage, for example for an error about contradictory flags.
func Misuse(err error) error { return WithStatus(Usage, err) }

// StatusOf returns the exit status that WithStatus has set for the error. For an error without an exit status, StatusOf
// returns Failure. For an interrupt or a time-out, StatusOf returns Failure instead of BadInput, because such errors
// say nothing about the input.
func StatusOf(err error) Status {
	var f failed
	switch {
	case err == nil:
		return Done
	case !errors.As(err, &f):
		return Failure
	case f.status == BadInput && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return Failure
	}
	return f.status
}
