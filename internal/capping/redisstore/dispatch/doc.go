// Package dispatch sends each command to the Redis node that holds the command's partition, and retries failed
// commands. The retries of a command end when the command has a valid reply, when no further attempt can succeed, or
// when the caller's time is up.
//
//	caller's goroutine                         per node
//	Run: batch ─> parts by partition ─> commands ─> sender's queue ─> worker ─> pipeline ─> node
//	      └── settle: accept, retry, redirect or give up <── inbox <── replies ──┘
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. A run sorts the users of a batch by
// partition, and makes commands for them. Each command has users of one partition. A run limits the number of its
// commands in flight to each node (front.go). A sender (sender.go) owns the queue of one node. Each sender has workers
// (called lanes in the code), which combine the queued commands of all runs into pipelines. The replies to a run's
// commands go to the inbox of the run (run.go). The run settles each attempt (transmission of a command): the run
// accepts the reply, retries the command, or gives up (settle.go). Package fault classifies the error of an attempt,
// and the class decides between a retry and giving up.
//
// A Command (command.go) belongs to the run that created it. An attempt (attempt.go) is one transmission of a command
// to a node. From its submission to a queue until its delivery to the inbox, an attempt belongs to a worker of the
// sender. After the store has returned from a call, no worker uses the batch of this call.
//
// Only an Operation interprets the arguments and replies of the commands of its run.
package dispatch
