// Package dispatch sends commands to the Redis nodes that hold their partitions, and retries the commands. The retries
// end when every command has a valid reply, when another attempt cannot succeed, or when the caller's time is up.
//
//	caller's goroutine                         per node
//	Run: batch ─> parts by partition ─> commands ─> sender's queue ─> worker ─> pipeline ─> node
//	      └── settle: accept, retry, redirect or give up <── inbox <── replies ──┘
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. The run sorts the users of a batch by
// partition and divides them into commands. It keeps a limited number of commands in flight to every node (front.go). A
// sender (sender.go) owns the queue of one node. The workers of a sender, called lanes in the code, combine the queued
// commands of all runs into pipelines. Replies go to the run's inbox (run.go). The run then settles each attempt by the
// kind of its fault (settle.go, package fault).
//
// A Command (command.go) belongs to its run. An attempt (attempt.go) is one transmission of a command. The attempt
// belongs to a worker from its submission until its delivery. A worker therefore never uses a batch after the batch's
// caller has returned.
//
// Only an Operation interprets the arguments and replies of its commands.
package dispatch
