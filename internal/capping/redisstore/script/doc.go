// Package script knows how the engine talks to its Lua scripts. It speaks to no
// server but through a client that it is given.
//
//	keyspace.go   which partition, bucket and field a user has, and which key and slot
//	plan.go       in which order the users of a batch are asked
//	rulebook.go   the rules of a batch's groups, encoded, and how many users a command may have under them
//	format.go     the versions of what is stored, and the marker that tells them
//	contract.go   the arguments and replies of the scripts: the one place that knows them
//	beat.go       the same for what instances tell each other
//	pace.go       the same for the scripts of pacers
//	count.go      the same for sends counted by message, answers.go for answers
//	pacerlog.go   the logs of pacers as they are stored
//	args.go       a command over users, in memory that serves again
//	constants.go  what Go and Lua have to agree on, put into the texts as ${NAME}
//	script.go     the texts, and the names that servers know them by
//
// Redis runs the whole text of a script at each call: every function and table
// that a text makes outside of a loop is made anew for one user as for 512. So
// functions for what is rare take arguments and capture nothing.
package script
