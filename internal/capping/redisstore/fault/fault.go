// Package fault classifies errors in the communication with a Redis server, and gives a remedy (next action of the
// caller) for each error. A remedy is the next action of the caller: retry, refresh the routes, or give up. Only
// package fault parses the texts of Redis error replies. Error types of this program can implement the interface Known
// to return their own remedies.
package fault

import (
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Kind is the category of an error in the communication with Redis. Kinds are label values of the metric
// capper_store_errors_total.
type Kind string

// The constant None means that no error occurred. Each other constant is a category of errors.
const (
	None      Kind = ""
	Script    Kind = "script"     // the node has not loaded the script
	Moved     Kind = "moved"      // another node holds the hash slot
	Ask       Kind = "ask"        // another node is importing the hash slot
	TryAgain  Kind = "tryagain"   // the keys of the hash slot are on two nodes
	Down      Kind = "down"       // the node or the cluster is temporarily down
	Dial      Kind = "dial"       // no connection to the node
	Lost      Kind = "lost"       // no reply: the command may or may not have been executed
	Acks      Kind = "acks"       // too few replicas confirmed the write
	Clock     Kind = "clock"      // the node's clock differs too much from the local clock
	Lag       Kind = "lag"        // the command took longer to arrive than the tolerated clock difference
	Memory    Kind = "memory"     // the node is out of memory
	Auth      Kind = "auth"       // wrong password or missing permission
	Server    Kind = "server"     // any other error reply of a server
	Route     Kind = "route"      // no node serves the hash slot
	Barred    Kind = "barred"     // the partition is in quarantine: some of its records are lost
	Deadline  Kind = "deadline"   // the caller's time is up
	Gone      Kind = "gone"       // the caller has left; not in Kinds, because no fault of the store
	Corrupt   Kind = "corrupt"    // the length of a log is not a multiple of the entry size
	WrongType Kind = "wrong_type" // the key has another Redis type
)

// Kinds returns all categories except None and Gone.
func Kinds() []Kind {
	return []Kind{
		Script, Moved, Ask, TryAgain, Down, Dial, Lost, Acks, Clock, Lag,
		Memory, Auth, Server, Route, Barred, Deadline, Corrupt, WrongType,
	}
}

// ClusterDown is a hint for operators whose cluster has hash slots without a master.
const ClusterDown = "the cluster is down: redis-cli --cluster check ADDRESS shows which slots have no master"

// Hint returns advice for an operator about errors of this kind, or "" if there is no advice.
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

// A Remedy is the next action of the caller after an attempt at a Redis command, with the kind of the error. The zero
// Remedy means success.
type Remedy struct {
	Kind    Kind
	Unknown bool          // the command may have been executed
	Refresh bool          // the routes are out of date
	Now     bool          // retry at once
	Final   bool          // further attempts cannot succeed
	Vet     bool          // the node's settings or rights have changed and must be examined
	Addr    string        // with Moved and Ask: address of the other node
	Off     time.Duration // with Clock: the node's clock minus the local clock
}

// Known is an interface that an error type implements to return its own remedy (next action of the caller).
type Known interface {
	error
	Remedy() Remedy
}

// The function Of returns the remedy (next action of the caller) after an attempt at a Redis command has ended with the
// given error. A nil error means success.
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

// IsAuth reports whether the Redis server rejected the user or the password, or denied a command or a key.
func IsAuth(err error) bool { return answered(err) && Of(err).Kind == Auth }

// The function "answered" reports whether the chain of the error contains an error reply of a Redis server.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// ErrNoRoute is the error for a partition whose hash slot no node serves.
var ErrNoRoute error = noRoute{}

type noRoute struct{}

func (noRoute) Error() string  { return "no node serves the slot" }
func (noRoute) Remedy() Remedy { return Remedy{Kind: Route, Refresh: true} }
