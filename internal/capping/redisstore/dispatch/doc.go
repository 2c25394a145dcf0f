// Package dispatch sends commands to the Redis nodes that hold their partitions and retries them. It
// stops when every command has a valid reply, when retries are useless, or when the caller's
// time is up.
//
//	caller's goroutine                         per node
//	Run: batch ─> parts by partition ─> commands ─> sender's queue ─> worker ─> pipeline ─> node
//	      └── settle: accept, retry, redirect or give up <── inbox <── replies ──┘
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. It sorts the users of a
// batch by partition, cuts them into commands, and keeps a limited number of commands in flight on
// every node (front.go). A sender (sender.go) owns the queue of one node. Its workers, called lanes in
// the code, combine the queued commands of all runs into pipelines. Replies go to the run's inbox
// (run.go), and the run settles each attempt by the kind of its fault (settle.go, package fault).
//
// A Command (command.go) belongs to its run. An attempt (attempt.go) is one transmission of a
// command, and belongs to a worker from its submission until its delivery. A worker therefore never
// touches a batch after its caller has returned.
//
// Only an Operation knows the meaning of its commands.
package dispatch
