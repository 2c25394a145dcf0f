// Package dispatch sends each command to the Redis node that holds the command's partition, and retries commands that
// failed. The retries of a command end when it has a valid reply, when another attempt cannot succeed, or when the
// caller's time is up.
//
//	caller's goroutine                         per node
//	Run: batch ─> parts by partition ─> commands ─> sender's queue ─> worker ─> pipeline ─> node
//	      └── settle: accept, retry, redirect or give up <── inbox <── replies ──┘
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. A run sorts the users of a batch by
// partition, and makes commands that each have users of one partition. A run limits how many of its commands are in
// flight to each node (front.go). A sender (sender.go) owns the queue of one node. Each sender has workers (called
// lanes in the code), which combine the queued commands of all runs into pipelines. The replies to a run's commands go
// to the inbox of the run (run.go). The run then settles each attempt by the kind of its fault: the run accepts the
// reply, retries the command, or gives up (settle.go, package fault).
//
// A Command (command.go) belongs to the run that created it. An attempt (attempt.go) is one transmission of a command
// to a node. From its submission until its delivery to the inbox, an attempt belongs to a worker of the sender. A
// worker therefore never uses a batch after the call of the batch's owner has returned.
//
// Only an Operation interprets the arguments and replies of the commands of its run.
package dispatch
