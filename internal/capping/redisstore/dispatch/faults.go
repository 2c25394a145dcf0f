package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"capper/internal/capping/redisstore/fault"
)

// Faults counts the errors of a run by their kind, and keeps one error of each kind as an example.
type Faults struct {
	// The field What names the undecided work in the error text if the run has no users, for example "the call for
	// permits is".
	What     string
	Users    map[fault.Kind]int // number of undecided users
	Attempts map[fault.Kind]int // number of failed attempts
	example  map[fault.Kind]error
}

func (f *Faults) addAttempt(k fault.Kind, err error) {
	f.keepExample(k, err)
	f.Attempts[k]++
}

// AddUndecided counts users who stay undecided because of an error of the kind k. AddUndecided keeps "err" as an
// example if "err" is the first error of this kind.
func (f *Faults) AddUndecided(k fault.Kind, users int, err error) {
	if users == 0 {
		return
	}
	f.keepExample(k, err)
	f.Users[k] += users
}

func (f *Faults) keepExample(k fault.Kind, err error) {
	if f.Users == nil {
		f.Users, f.Attempts, f.example = map[fault.Kind]int{}, map[fault.Kind]int{}, map[fault.Kind]error{}
	}
	if f.example[k] == nil && err != nil {
		f.example[k] = err
	}
}

// Err returns an error that tells operators why users stayed undecided, or nil if every user was decided.
func (f *Faults) Err() error {
	var kinds []fault.Kind
	for k, n := range f.Users {
		if n > 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	slices.Sort(kinds)
	var parts []error
	for _, k := range kinds {
		err := fmt.Errorf("%s undecided (%s)", cmp.Or(f.What, fmt.Sprint(f.Users[k], " users")), k)
		if cause := f.cause(k); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		if hint := k.Hint(); hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		parts = append(parts, err)
	}
	return errors.Join(parts...)
}

// The method "cause" returns the example that Faults keeps for a kind of errors. For the kind Deadline, "cause" returns
// an example of the most frequent kind of errors before the deadline.
func (f *Faults) cause(k fault.Kind) error {
	if k != fault.Deadline || len(f.Attempts) == 0 {
		return f.example[k]
	}
	most := fault.None
	for other, n := range f.Attempts {
		if n > f.Attempts[most] || n == f.Attempts[most] && other < most {
			most = other
		}
	}
	return f.example[most]
}
