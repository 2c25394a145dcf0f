package audit

import (
	"errors"
	"fmt"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// A Record describes one call to the service with its decisions, or with the changes that the call made to a set.
type Record struct {
	Kind     Kind
	Instance string // name of the writing instance: 8 to 32 hex digits, one for each life of a spool directory
	Sequence uint64 // number of the record within the instance, from 1; a missing number means a lost record
	// At is the time when the service passed the call to the store. Took is the duration of the store call in whole
	// milliseconds. The timestamps of recorded sends lie between At and At plus Took.
	At   capping.Instant
	Took time.Duration

	Message capping.Message // message of the call; "" in a permit request: no message
	Channel capping.Channel // 0: no channel; in a release: all channels
	Client  string          // client that made the call
	Key     string          // id of the client's API key; "": no keys are configured

	Generation string // generation of segments and sets
	Config     string // version of the configuration
	// Widening is the time by which the store extended rolling windows (capping.Widening). The header of the audit file
	// holds Widening for all records.
	Widening time.Duration

	Exempt   bool   // the call had "enforce": false, so limits denied nobody
	Audience string // audience expression of the call; "": the call listed users

	Groups   []Group        // disjoint groups of users, none of them empty
	Segments []SegmentCount // for a filter call: segments with users, by precedence, users in no segment last
	Shadow   []Count        // for a filter call: allowed users whom a shadow limit would have denied, by limit

	Permits *Permits   // for a permit request; otherwise nil
	Change  *SetChange // for a change of a set; otherwise nil
}

// A Kind is the type of call that a record describes.
type Kind uint8

// These constants are the numbers of the kinds of calls in audit files.
const (
	Filter  Kind = 1
	Release Kind = 2
	Pace    Kind = 3 // permits
	Change  Kind = 4 // changes of users' membership in a set
)

// An Outcome is the decision or action of the service for a group of users, such as allowed or released.
type Outcome uint8

// These constants are the numbers of the outcomes in audit files.
const (
	Allowed            Outcome = 1 // allowed and recorded by this call
	Replayed           Outcome = 2 // allowed; an earlier call had recorded the send
	Denied             Outcome = 3
	Unavailable        Outcome = 4  // unknown result: the send may have been recorded
	Released           Outcome = 5  // the release removed the send from the user's log
	Absent             Outcome = 6  // the user's log had no send that a release could remove
	ReleaseUnavailable Outcome = 7  // unknown result of a release
	Added              Outcome = 8  // added to the set by a call
	Removed            Outcome = 9  // removed from the set by a call
	ChangeUnavailable  Outcome = 10 // unknown result of a change to a set
)

// outcomeNames lists the names of the outcomes in audit records, in the order of the outcomes' numbers.
var outcomeNames = [...]string{
	Allowed: "allowed", Replayed: "replayed", Denied: "denied", Unavailable: "unavailable",
	Released: "released", Absent: "absent", ReleaseUnavailable: "release_unavailable",
	Added: "added", Removed: "removed", ChangeUnavailable: "change_unavailable",
}

// The function Outcomes lists all outcomes that users in audit records can have, in the order of the outcomes' numbers.
func Outcomes() (list []Outcome) {
	for o := Allowed; int(o) < len(outcomeNames); o++ {
		list = append(list, o)
	}
	return list
}

// The method "known" reports whether the outcome is in the list that Outcomes returns.
func (o Outcome) known() bool { return o > 0 && int(o) < len(outcomeNames) }

// String returns the name of the outcome.
func (o Outcome) String() string {
	if !o.known() {
		return fmt.Sprintf("outcome %d", uint8(o))
	}
	return outcomeNames[o]
}

// A Group is a set of users in one call who have the same outcome for the same reason.
type Group struct {
	Outcome Outcome
	By      capping.Reason // reason for the outcome Denied
	// Limit names the reason for a denial in the API's words: the name of a limit, "suppressed", "holdout" or "quiet".
	// For other outcomes, Limit is empty.
	Limit string
	Set   string // for BySuppression: the set of suppressed users
	// Users holds users with dense ids (32-bit numbers). Images holds the id images of users whose ids are not dense,
	// in strictly ascending order. One of Users and Images is nil.
	Users  *bitmap.Bitmap
	Images []capping.UserID
	// The field encoded holds the users in their stored form, instead of Users and Images; see SetSorted.
	encoded []byte
	wide    bool // encoded holds id images
}

// SetSorted sets the users of a group without creating a Bitmap, for a group that is only written to an audit file and
// not read. The ids must be in strictly ascending order. The group uses the memory of the argument "buffer" until the
// group is encoded; SetSorted returns the extended buffer.
func (g *Group) SetSorted(ids []uint32, buffer []byte) []byte {
	start := len(buffer)
	buffer = appendSorted(buffer, ids)
	g.encoded, g.wide = buffer[start:len(buffer):len(buffer)], false
	return buffer
}

// SetSortedImages works like SetSorted, for id images (64-bit hashes) instead of dense ids.
func (g *Group) SetSortedImages(images []capping.UserID, buffer []byte) []byte {
	start := len(buffer)
	buffer = appendImages(buffer, images)
	g.encoded, g.wide = buffer[start:len(buffer):len(buffer)], true
	return buffer
}

// The method check returns an error if the group of users is invalid. The argument "wide" of the method check is true
// if the group must hold id images (64-bit hashes) instead of dense ids.
func (g *Group) check(wide bool) error {
	denied := g.Outcome == Denied
	switch {
	case !g.Outcome.known():
		return fmt.Errorf("unknown outcome %d", g.Outcome)
	case g.By > capping.ByQuiet || g.By != capping.ByLimit && !denied:
		return fmt.Errorf("group of users in an audit record: reason %d is not valid for outcome %d", g.By, g.Outcome)
	case (g.Limit != "") != denied:
		return fmt.Errorf("group of users in an audit record: limit %q is not valid for outcome %d", g.Limit, g.Outcome)
	case (g.Set != "") != (denied && g.By == capping.BySuppression):
		return fmt.Errorf("group of users in an audit record: set %q is not valid for reason %d", g.Set, g.By)
	case len(g.encoded) == 0 && g.Count() == 0:
		return errors.New("a group of users in an audit record must not be empty")
	case wide != (g.Images != nil || g.encoded != nil && g.wide):
		return errors.New(
			"group of users in an audit record: the ids must be of the same kind as all ids in the audit file")
	}
	return nil
}

// Count is a name with a number of users.
type Count struct {
	Name  string
	Users int
}

// SegmentCount holds the numbers of users of one segment whom a filter call allowed and denied.
type SegmentCount struct {
	Name        string // "": users in no segment
	Requested   int
	Allowed     int // includes replayed users
	Denied      int
	Unavailable int
}

// SetChange describes a call that added users to a set or removed users from the set. The groups of the Record hold the
// added and removed users.
type SetChange struct {
	Set       string
	At        capping.Instant // the instant at which the changes take effect
	RequestID string          // request id of the call
}

// The type Permits describes a request for permits (rights to send at certain times), and the response.
type Permits struct {
	Pacers  []string
	Asked   int
	Granted int
	First   time.Duration // time from At to the first slot
	Last    time.Duration // time from At to the last slot
	Limited string        // the pacer that limited the permits; "": no pacer did
}
