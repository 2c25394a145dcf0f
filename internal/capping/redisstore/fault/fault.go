// Package fault says what an error on the way to a Redis server and back means,
// and what is to be done about it: it is the one place that reads the text of
// error replies. An error that is of this program's making says so itself (see
// Known).
package fault

import (
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Kind says what went wrong; it is a label of capper_store_errors_total.
type Kind string

// The kinds of faults.
const (
	None      Kind = ""
	Script    Kind = "script"     // the node lacks the script
	Moved     Kind = "moved"      // another node holds the slot
	Ask       Kind = "ask"        // another node is importing the slot
	TryAgain  Kind = "tryagain"   // the slot's keys are on two nodes
	Down      Kind = "down"       // the node or the cluster does not serve now
	Dial      Kind = "dial"       // no connection
	Lost      Kind = "lost"       // no answer: it may or may not have happened
	Acks      Kind = "acks"       // too few replicas confirmed
	Clock     Kind = "clock"      // the node's clock differs too much
	Lag       Kind = "lag"        // the command was on its way for longer than clocks may differ
	Memory    Kind = "memory"     // the node is full
	Auth      Kind = "auth"       // wrong password or missing permission
	Server    Kind = "server"     // any other error of the server
	Route     Kind = "route"      // no node serves the slot
	Barred    Kind = "barred"     // what is recorded there is not whole
	Deadline  Kind = "deadline"   // time was up
	Corrupt   Kind = "corrupt"    // a log that is not a whole number of entries
	WrongType Kind = "wrong_type" // a key of another type
)

// Kinds are all but None.
func Kinds() []Kind {
	return []Kind{
		Script, Moved, Ask, TryAgain, Down, Dial, Lost, Acks, Clock, Lag,
		Memory, Auth, Server, Route, Barred, Deadline, Corrupt, WrongType,
	}
}

// ClusterDown is what to do about a cluster of which a part has no master.
const ClusterDown = "the cluster is down: redis-cli --cluster check ADDRESS shows which slots have no master"

// Hint is what an operator can do about faults of the kind; "" where there is
// nothing to be said.
func (k Kind) Hint() string {
	switch k {
	case Acks:
		return "replicas are lost or behind: /v1/status shows the node"
	case Clock:
		return "synchronise the clocks with NTP"
	case Memory:
		return "the node is full: add memory, or move slots to another node"
	case Auth:
		return "compare user, password and deploy/redis.acl with the settings of the node"
	case Route:
		return ClusterDown
	case Down:
		return "the node is starting, failing over or out of service"
	}
	return ""
}

// Remedy is what to do about a fault. The zero Remedy is that of a success.
type Remedy struct {
	Kind    Kind
	Unknown bool          // the command may have been executed
	Refresh bool          // the routes are out of date
	Now     bool          // try again at once
	Final   bool          // trying again is of no use
	Vet     bool          // the node's settings or rights have changed
	Addr    string        // of Moved and Ask: the node that is named
	Off     time.Duration // of Clock: the node's clock less ours
}

// Known is an error that knows its remedy.
type Known interface {
	error
	Remedy() Remedy
}

// Of classifies the outcome of an attempt.
func Of(err error) Remedy {
	var known Known
	var reply redis.Error
	var op *net.OpError
	switch {
	case err == nil:
		return Remedy{}
	case errors.As(err, &known):
		return known.Remedy()
	case errors.As(err, &reply):
		return ofReply(reply.Error())
	case errors.As(err, &op) && op.Op == "dial":
		return Remedy{Kind: Dial, Refresh: true}
	}
	return Remedy{Kind: Lost, Unknown: true, Refresh: true}
}

// IsAuth reports whether a server refused the user, the password or a command
// or key for lack of a right.
func IsAuth(err error) bool { return answered(err) && Of(err).Kind == Auth }

// answered reports whether a server's error reply is in the chain.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// ErrNoRoute is that no node serves a slot.
var ErrNoRoute error = noRoute{}

type noRoute struct{}

func (noRoute) Error() string  { return "no node serves the slot" }
func (noRoute) Remedy() Remedy { return Remedy{Kind: Route, Refresh: true} }
