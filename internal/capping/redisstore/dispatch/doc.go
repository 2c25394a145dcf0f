// Package dispatch gets commands done: it sends each one to the node that holds
// its partition, as many at once as the node can take, and sends it again until
// there is a reply that holds, trying is of no use, or the caller's time is up.
// What the commands mean is known to their Operation alone.
//
// A Run (run.go) belongs to one caller and stays on the caller's goroutine. It
// arranges the users of a batch by partition, cuts them into commands, and keeps
// a number of them in flight on every node (front.go). A sender (sender.go) has
// the queue of one node; its lanes turn what commands of all runs are in it into
// pipelines. What came back goes into the run's inbox (run.go), and the run
// settles it (settle.go): by its kind (package fault) an attempt is taken,
// repeated, sent elsewhere or given up.
//
// A Command (command.go) is what is asked, and belongs to its run. An attempt
// (attempt.go) is one sending of it, and belongs to a lane from when it is
// submitted until it is delivered, so that nothing of a batch is touched after
// its caller has left.
package dispatch
