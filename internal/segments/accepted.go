package segments

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// AcceptedFormatVersion is the format version of a manifest that lists changes of sets or segments that an operator
// approved. Older programs reject a manifest with this version, and keep the generation (published version) of segments
// that they have.
const AcceptedFormatVersion = 3

// MaxAccepted and the constants below limit the list of approved changes in a manifest.
const (
	// MaxAccepted is the maximum number of acceptances (operator's approvals of changes) in a manifest. The publisher
	// keeps the newest acceptances.
	MaxAccepted = 64
	// MaxAcceptedAge is the time for which later manifests repeat an acceptance (an operator's approval of a change).
	MaxAcceptedAge = 30 * 24 * time.Hour
	// MaxAcceptedChange and MaxAcceptedReason are the maximum lengths of an acceptance's texts, in bytes.
	MaxAcceptedChange = 64
	MaxAcceptedReason = 1024
)

// An Accepted records that an operator approved one change of a set or segment, for example the loss of many users.
// Several approved changes can form a chain: the ToSHA256 of each change is the FromSHA256 of a later change.
type Accepted struct {
	// One of the fields Set and Segment contains the name of the set or segment; the other is empty.
	Set     string `json:"set,omitempty"`
	Segment string `json:"segment,omitempty"`
	// FromSHA256 identifies the users before the change; see Manifest.Users.
	FromSHA256 string `json:"from_sha256"`
	// ToSHA256 identifies the users after the change; see Manifest.Users. If the set was removed, ToSHA256 is empty.
	ToSHA256 string `json:"to_sha256"`
	// Before is the number of users before the change. Removed is the number of users who left by the approved change.
	Before  uint64 `json:"before"`
	Removed uint64 `json:"removed"`
	// Change is the operator's text of the change, for example "-57%".
	Change string `json:"change"`
	Reason string `json:"reason"`
	// At is the creation time of the generation that made the change.
	At time.Time `json:"at"`
}

func (a *Accepted) check() error {
	if err := a.checkName(); err != nil {
		return err
	}
	switch {
	case !sha256Rule.MatchString(a.FromSHA256):
		return fmt.Errorf("from_sha256 %q: must be 64 lower-case hex digits", a.FromSHA256)
	case a.ToSHA256 != "" && !sha256Rule.MatchString(a.ToSHA256):
		return fmt.Errorf("to_sha256 %q: must be empty or 64 lower-case hex digits", a.ToSHA256)
	case a.ToSHA256 == a.FromSHA256:
		return fmt.Errorf("to_sha256 %q: must differ from the value of 'from_sha256'", a.ToSHA256)
	case a.Removed > a.Before:
		return fmt.Errorf("the field 'removed' must be at most %[2]d, the value of the field 'before', got %[1]d",
			a.Removed, a.Before)
	case a.ToSHA256 == "" && a.Removed != a.Before:
		return fmt.Errorf(
			"the field 'removed' must be %[2]d, the value of the field 'before', "+
				"because the set no longer exists, got %[1]d",
			a.Removed, a.Before)
	case a.At.IsZero():
		return errors.New("at: must be set")
	}
	if err := checkText("change", a.Change, MaxAcceptedChange); err != nil {
		return err
	}
	return checkText("reason", a.Reason, MaxAcceptedReason)
}

func (a *Accepted) checkName() error {
	switch {
	case a.Set != "" && a.Segment != "":
		return fmt.Errorf("an accepted change must name either a set or a segment, got set %q and segment %q",
			a.Set, a.Segment)
	case a.Segment != "":
		return CheckName(a.Segment)
	}
	return CheckSetName(a.Set)
}

func checkText(field, text string, most int) error {
	if text == "" || len(text) > most || !utf8.ValidString(text) {
		return fmt.Errorf("%s must be 1 to %d bytes of valid UTF-8, got %d", field, most, len(text))
	}
	return nil
}

// WithAccepted returns a copy of the manifest with the given list of approved changes. The copy has a new generation
// name, because the name contains a hash of all fields of the manifest.
func (m *Manifest) WithAccepted(list []Accepted) (*Manifest, error) {
	with := *m
	with.Accepted = slices.Clone(list)
	with.FormatVersion = with.version()
	with.Generation = with.name()
	return &with, with.check()
}

// CarriedAccepted returns the approved changes that a later manifest must repeat. The result of CarriedAccepted has the
// newest approved changes, at most MaxAccepted minus the argument "room". The result of CarriedAccepted has no changes
// that are older than MaxAcceptedAge.
func (m *Manifest) CarriedAccepted(at time.Time, room int) []Accepted {
	list := slices.DeleteFunc(slices.Clone(m.Accepted), func(a Accepted) bool { return at.Sub(a.At) > MaxAcceptedAge })
	return list[max(0, len(list)-max(0, MaxAccepted-room)):]
}

func (m *Manifest) checkAccepted() error {
	if len(m.Accepted) > MaxAccepted {
		return fmt.Errorf("accepted: must be a list of at most %d accepted changes, got %d",
			MaxAccepted, len(m.Accepted))
	}
	for i := range m.Accepted {
		if err := m.Accepted[i].check(); err != nil {
			return fmt.Errorf("accepted[%d]: %w", i, err)
		}
	}
	return nil
}
