package terminal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Status is how a command ended: the exit status of its process. Each number
// means one thing, whichever program ends with it; docs/commands.md tells
// users what to do about each.
type Status int

// The statuses of all programs.
const (
	Done      Status = iota // done, or nothing to do
	Failure                 // what may work another time, or with other rights
	Usage                   // a command line that makes no sense, to the program or to the service
	BadInput                // a file or stream to read that is missing or has faults
	Undecided               // users are left undecided: by the store, or between segments that overlap
	Refused                 // the guard refused to publish
	LostRace                // somebody else published first
	OnHold                  // publishing is on hold
	Findings                // a check has findings
)

// meanings are what `--help` says of the statuses.
var meanings = [...]string{
	Done: "done", Failure: "failure", Usage: "usage", BadInput: "bad input", Undecided: "users left undecided",
	Refused: "refused by the guard", LostRace: "another process published first", OnHold: "publishing is on hold",
	Findings: "findings",
}

// describe lists the statuses that a program has, up to the last one and those beyond it,
// with what it says of them beyond their meaning.
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

// failed is an error with the status that a command ends with for it.
type failed struct {
	error
	status Status
}

func (f failed) Unwrap() error { return f.error }

// WithStatus says which status a command ends with for the error; nil stays nil.
// What an error already says counts for less than what is said around it.
func WithStatus(status Status, err error) error {
	if err == nil {
		return nil
	}
	return failed{err, status}
}

// Misuse is the error of a command line that contradicts itself or what it names.
func Misuse(err error) error { return WithStatus(Usage, err) }

// StatusOf is the status of an error: what WithStatus said of it, else Failure.
// A command that was interrupted, or whose time was over, learned nothing of its
// input: that is a Failure too.
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
