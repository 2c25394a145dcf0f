// Package dispatch sends commands to the Redis nodes that hold their partitions, and retries commands that failed. The
// retries of a command end when it has a valid reply, when another attempt cannot succeed, or when the caller's time is
// up.
//
//	caller's goroutine                         per node
//	Run: batch ─> parts by partition ─> commands ─> sender's queue ─> worker ─> pipeline ─> node
//	      └── settle: accept, retry, redirect or give up <── inbox <── replies ──┘
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. A run sorts the users of a batch by
// partition and divides them into commands. A run keeps a limited number of commands in flight to every node
// (front.go). A sender (sender.go) owns the queue of one node. The workers of a sender, called lanes in the code,
// combine the queued commands of all runs into pipelines. Replies to commands go to the inbox of their run (run.go).
// The run then settles each attempt by the kind of its fault: it accepts the reply, retries, or gives up (settle.go,
// package fault).
//
// A Command (command.go) belongs to the run that created it. An attempt (attempt.go) is one transmission of a command
// to a node. An attempt belongs to a worker of the sender from its submission until its delivery to the inbox. A worker
// therefore never uses a batch after the batch's caller has returned.
//
// Only an Operation interprets the arguments and replies of the commands of its run.
package dispatch
