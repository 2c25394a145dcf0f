package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status is the exit status of a command's process. Each number has one meaning in all programs; docs/commands.md
// tells users what to do about each.
type Status int

// These are the exit statuses of all programs.
const (
	Done      Status = iota // done, or nothing to do
	Failure                 // a retry, or other rights, may succeed
	Usage                   // a command line that makes no sense, to the program or to the service
	BadInput                // a file or stream to read that is missing or has faults
	Undecided               // users are left undecided: by the store, or between segments that overlap
	Refused                 // the guard refused to publish
	LostRace                // somebody else published first
	OnHold                  // publishing is on hold
	Findings                // a check has findings
)

// meanings is the explanations of the statuses in `--help`.
var meanings = [...]string{
	Done: "done", Failure: "failure", Usage: "usage", BadInput: "bad input", Undecided: "users left undecided",
	Refused: "refused by the guard", LostRace: "another process published first", OnHold: "publishing is on hold",
	Findings: "findings",
}

// describe returns the help text about a program's exit statuses: all up to last, those in beyond, and the further
// text for some.
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

// failed is an error together with the exit status that it causes.
type failed struct {
	error
	status Status
}

func (f failed) Unwrap() error { return f.error }

// WithStatus sets the exit status for an error; nil stays nil. The outermost status of an error counts.
func WithStatus(status Status, err error) error {
	if err == nil {
		return nil
	}
	return failed{err, status}
}

// Misuse marks an error as a wrong command line, for example one with contradictory flags.
func Misuse(err error) error { return WithStatus(Usage, err) }

// StatusOf returns the exit status of an error: the one from WithStatus, or else Failure. Interrupts and time-outs
// are Failure too, because they prove nothing about the input.
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
