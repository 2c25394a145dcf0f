package redisstore

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// kind says what went wrong; it is a label of capper_store_errors_total.
type kind string

const (
	kindNone      kind = ""
	kindScript    kind = "script"     // the node lacks the script
	kindMoved     kind = "moved"      // another node holds the slot
	kindAsk       kind = "ask"        // another node is importing the slot
	kindTryAgain  kind = "tryagain"   // the slot's keys are on two nodes
	kindDown      kind = "down"       // the node or the cluster does not serve now
	kindDial      kind = "dial"       // no connection
	kindLost      kind = "lost"       // no answer: it may or may not have happened
	kindAcks      kind = "acks"       // too few replicas confirmed
	kindClock     kind = "clock"      // the node's clock differs too much
	kindLag       kind = "lag"        // the call was on its way for longer than clocks may differ
	kindMemory    kind = "memory"     // the node is full
	kindAuth      kind = "auth"       // wrong password or missing permission
	kindServer    kind = "server"     // any other error of the server
	kindRoute     kind = "route"      // no node serves the slot
	kindBarred    kind = "barred"     // what is recorded there is not whole
	kindDeadline  kind = "deadline"   // time was up
	kindCorrupt   kind = "corrupt"    // a log that is none
	kindWrongType kind = "wrong_type" // a key of another type
)

// kinds are all that metrics count.
var kinds = []kind{
	kindScript, kindMoved, kindAsk, kindTryAgain, kindDown, kindDial, kindLost, kindAcks, kindClock, kindLag,
	kindMemory, kindAuth, kindServer, kindRoute, kindBarred, kindDeadline, kindCorrupt, kindWrongType,
}

// remedy is what a run does about a fault.
type remedy struct {
	kind    kind
	unknown bool          // the command may have been executed
	refresh bool          // the routes are out of date
	now     bool          // try again at once
	final   bool          // trying again is of no use
	vet     bool          // the node's settings or rights have changed
	addr    string        // of moved and ask
	off     time.Duration // of clock: the node's clock less ours
}

// prefixes of error replies and their remedies.
var replies = []struct {
	prefix string
	remedy remedy
}{
	{"NOSCRIPT", remedy{kind: kindScript, now: true}},
	{"MOVED ", remedy{kind: kindMoved, now: true, refresh: true}},
	{"ASK ", remedy{kind: kindAsk, now: true}},
	{"TRYAGAIN", remedy{kind: kindTryAgain, now: true}},
	{"CLUSTERDOWN", remedy{kind: kindDown, refresh: true}},
	{"READONLY", remedy{kind: kindDown, refresh: true}},
	{"LOADING", remedy{kind: kindDown, refresh: true}},
	{"MASTERDOWN", remedy{kind: kindDown, refresh: true}},
	{"BUSY", remedy{kind: kindDown}},
	{"MISCONF", remedy{kind: kindDown}},
	{"UNBLOCKED", remedy{kind: kindDown, unknown: true, refresh: true}},                            // a WAIT whose master was demoted
	{"ERR WAIT cannot be used with replica", remedy{kind: kindDown, unknown: true, refresh: true}}, // one that came later
	{"ERR max number of clients", remedy{kind: kindDown}},
	{"NOREPLICAS", remedy{kind: kindAcks}},
	{"CLOCKSKEW ", remedy{kind: kindClock}},
	{"OOM", remedy{kind: kindMemory, final: true}},
	{"NOAUTH", remedy{kind: kindAuth, final: true}},
	{"WRONGPASS", remedy{kind: kindAuth, final: true}},
}

// forbidden is the remedy of denials: the next refresh finds out what is lacking.
var forbidden = remedy{kind: kindAuth, final: true, refresh: true, vet: true}

// remedyOf classifies the outcome of an attempt. The zero remedy is success.
func remedyOf(err error) remedy {
	var unsent *errUnsent
	var acks *errAcks
	var reply redis.Error
	var op *net.OpError
	var barred *bar
	switch {
	case err == nil:
		return remedy{}
	case errors.As(err, &barred):
		return remedy{kind: kindBarred, final: true}
	case errors.As(err, &unsent):
		r := remedyOf(unsent.err)
		r.unknown, r.refresh = false, true
		return r
	case errors.As(err, &acks):
		return remedy{kind: kindAcks, unknown: true, refresh: true}
	case errors.As(err, &reply):
		return remedyOfReply(reply.Error())
	case errors.Is(err, errNoRoute):
		return remedy{kind: kindRoute, refresh: true}
	case errors.As(err, &op) && op.Op == "dial":
		return remedy{kind: kindDial, refresh: true}
	}
	return remedy{kind: kindLost, unknown: true, refresh: true}
}

var errNoRoute = errors.New("no node serves the slot")

func remedyOfReply(text string) remedy {
	for _, r := range replies {
		if !strings.HasPrefix(text, r.prefix) {
			continue
		}
		rest := text[len(r.prefix):]
		switch r.remedy.kind {
		case kindMoved, kindAsk:
			if _, addr, ok := strings.Cut(rest, " "); ok {
				r.remedy.addr = addr
			}
		case kindClock:
			off, _, _ := strings.Cut(rest, " ")
			ms, _ := strconv.ParseInt(off, 10, 64)
			r.remedy.off = time.Duration(ms) * time.Millisecond
		}
		return r.remedy
	}
	if isDenial(text) {
		return forbidden
	}
	return remedy{kind: kindServer, unknown: true}
}

// late is whether a call that came off after its stamp, and whose answer took so
// long, may have been late rather than the node's clock wrong.
func late(off, took, skew time.Duration) bool { return off > skew && off-took <= skew }

// clockError is what a node says of a stamp that is off its clock.
type clockError struct {
	off, skew time.Duration
	late      bool
}

func (e *clockError) Error() string {
	if e.late {
		return fmt.Sprintf("the call came %v after it was stamped, which is more than clock_skew %v: "+
			"the way there is slow, or clock_skew too short for the distance", e.off, e.skew)
	}
	return fmt.Sprintf("its clock differs from this machine's by %v, more than clock_skew %v", e.off, e.skew)
}

// faults counts what went wrong in a run, by kind, each with one example.
type faults struct {
	users    map[kind]int // users left undecided
	attempts map[kind]int // failed attempts
	example  map[kind]error
}

func (f *faults) attempt(k kind, err error) {
	f.note(k, err)
	f.attempts[k]++
}

func (f *faults) undecided(k kind, users int, err error) {
	if users == 0 {
		return
	}
	f.note(k, err)
	f.users[k] += users
}

func (f *faults) note(k kind, err error) {
	if f.users == nil {
		f.users, f.attempts, f.example = map[kind]int{}, map[kind]int{}, map[kind]error{}
	}
	if f.example[k] == nil && err != nil {
		f.example[k] = err
	}
}

// hints are what operators can do, by kind.
var hints = map[kind]string{
	kindAcks:   "replicas are lost or behind: /v1/status tells of which node",
	kindClock:  "set the clocks by NTP",
	kindMemory: "the node is full: give it more memory, or move slots to another",
	kindAuth:   "compare the user, the password and deploy/redis.acl with the node's",
	kindRoute:  clusterDown,
	kindDown:   "the node starts, fails over or is out of service",
}

// err is a sentence for operators about the users left undecided, or nil.
func (f *faults) err() error {
	var kinds []kind
	for k, n := range f.users {
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
		err := fmt.Errorf("%d users undecided (%s)", f.users[k], k)
		if cause := f.cause(k); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		if hint := hints[k]; hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		parts = append(parts, err)
	}
	return errors.Join(parts...)
}

// cause is the example of the kind; of a deadline, that of what went wrong
// most often until then.
func (f *faults) cause(k kind) error {
	if k != kindDeadline || len(f.attempts) == 0 {
		return f.example[k]
	}
	most := kindNone
	for other, n := range f.attempts {
		if n > f.attempts[most] || n == f.attempts[most] && other < most {
			most = other
		}
	}
	return f.example[most]
}
