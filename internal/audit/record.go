package audit

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Record is one call and what was decided.
type Record struct {
	Kind     Kind
	Instance string // who wrote it: 8 to 32 hex digits, one for each life of a spool directory
	Sequence uint64 // the n-th record of the instance, from 1; one that is missing was lost
	// At is when the call was given to the store, Took how long that took, in whole
	// milliseconds: what it recorded is stamped within.
	At   capping.Instant
	Took time.Duration

	Message capping.Message // of permits: "" where the call named none
	Channel capping.Channel // 0: none; of a release: all
	Client  string          // who called
	Key     string          // the id of its key; "" without keys

	Generation string // of segments and sets
	Config     string // the configuration's version
	// Widening is by how much rolling windows were longer than the limits say (capping.Widening); the
	// header of the file has it for all of its records.
	Widening time.Duration

	Exempt   bool   // enforce was false: limits did not deny
	Audience string // the expression, of a call that gave one; "": ids or a bitmap

	Groups   []Group        // disjoint; none is empty
	Segments []SegmentCount // of a filter call: segments that had users, in order of precedence, those in none last
	Shadow   []Count        // of a filter call: those allowed whom a shadow limit would have denied, by limit

	Permits *Permits // of permits, else nil
}

// Kind is what kind of call a record is of.
type Kind uint8

// The kinds. Their numbers are stored.
const (
	Filter  Kind = 1
	Release Kind = 2
	Pace    Kind = 3 // permits
)

// Outcome is what happened to the users of a group.
type Outcome uint8

// The outcomes. Their numbers are stored.
const (
	Allowed            Outcome = 1 // allowed and recorded by this call
	Replayed           Outcome = 2 // allowed, recorded by an earlier one
	Denied             Outcome = 3
	Unavailable        Outcome = 4 // not known: may or may not have been recorded
	Released           Outcome = 5 // the send was in the log and is no more
	Absent             Outcome = 6 // nothing to release
	ReleaseUnavailable Outcome = 7 // not known
)

// outcomeNames are the names of the outcomes, in the order of their numbers.
var outcomeNames = [...]string{
	Allowed: "allowed", Replayed: "replayed", Denied: "denied", Unavailable: "unavailable",
	Released: "released", Absent: "absent", ReleaseUnavailable: "release_unavailable",
}

// Outcomes lists the outcomes in the order of their numbers.
func Outcomes() (list []Outcome) {
	for o := Allowed; int(o) < len(outcomeNames); o++ {
		list = append(list, o)
	}
	return list
}

// known reports whether the outcome is one of Outcomes.
func (o Outcome) known() bool { return o > 0 && int(o) < len(outcomeNames) }

// String returns the outcome's name.
func (o Outcome) String() string {
	if !o.known() {
		return fmt.Sprintf("outcome %d", uint8(o))
	}
	return outcomeNames[o]
}

// Group is the users of a call to whom the same thing happened for the same cause.
type Group struct {
	Outcome Outcome
	By      capping.Reason // of Denied
	// Limit is what denied, as callers see it: the name of the limit, or suppressed,
	// holdout or quiet. "" of other outcomes.
	Limit string
	Set   string // of BySuppression: the set
	Users *bitmap.Bitmap
	// encoded is the users as they are stored, in the place of Users: see SetSorted.
	encoded []byte
}

// SetSorted gives a group that is only to be encoded its users, who ascend strictly, without
// a Bitmap of them. buffer is memory for that; it is the group's until it was encoded, and
// returned longer.
func (g *Group) SetSorted(ids []uint32, buffer []byte) []byte {
	start := len(buffer)
	buffer = appendSorted(buffer, ids)
	g.encoded = buffer[start:len(buffer):len(buffer)]
	return buffer
}

// check is why g is no group.
func (g *Group) check() error {
	denied := g.Outcome == Denied
	switch {
	case !g.Outcome.known():
		return fmt.Errorf("unknown outcome %d", g.Outcome)
	case g.By > capping.ByQuiet || g.By != capping.ByLimit && !denied:
		return fmt.Errorf("reason %d is not valid for outcome %d", g.By, g.Outcome)
	case (g.Limit != "") != denied:
		return fmt.Errorf("limit %q is not valid for outcome %d", g.Limit, g.Outcome)
	case (g.Set != "") != (denied && g.By == capping.BySuppression):
		return fmt.Errorf("set %q is not valid for reason %d", g.Set, g.By)
	case len(g.encoded) == 0 && (g.Users == nil || g.Users.Cardinality() == 0):
		return errors.New("nobody")
	}
	return nil
}

// Count is so many users by a name.
type Count struct {
	Name  string
	Users int
}

// SegmentCount counts the users of a segment in a filter call.
type SegmentCount struct {
	Name        string // "" for users in none
	Requested   int
	Allowed     int // replayed included
	Denied      int
	Unavailable int
}

// Permits is what a call for permits asked and was given.
type Permits struct {
	Pacers  []string
	Asked   int
	Granted int
	First   time.Duration // from At to the first slot
	Last    time.Duration // from At to the last slot
	Limited string        // the pacer that limited; "": none
}
