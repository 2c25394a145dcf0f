// Package script holds the Lua scripts of the Redis store, and encodes their arguments and decodes their replies. It
// opens no connection: callers pass a Redis client.
//
//	keyspace.go   the partition, bucket, field, key and slot of a user
//	plan.go       the order in which the users of a batch are asked
//	format.go     the versions of the stored format, and the marker that names the version
//	contract.go   the arguments and replies of the scripts over users, and the rules of a batch's groups
//	beat.go       the arguments and replies of heartbeats
//	pace.go       the arguments and replies of the pacers' scripts
//	count.go      the keys and fields of sends counted by message; answers.go has those of answers
//	pacerlog.go   the stored logs of pacers
//	live.go       the arguments and replies of the logs of live changes
//	args.go       a command over users, in reused memory
//	constants.go  the constants that Go and Lua share, filled into the texts as ${NAME}
//	script.go     the texts of the scripts, and the SHA by which a server knows each one
//
// Redis runs the whole text of a script at each call, so every function and table outside of a loop is created again.
// Functions for rare cases therefore take arguments and capture no variables.
package script
