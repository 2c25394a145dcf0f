// Package script holds the Lua scripts of the Redis store. Package script encodes the arguments of the Lua scripts and
// decodes their replies. Package script opens no connection to Redis: callers pass a Redis client.
//
//	keyspace.go   the partition, bucket, field, key and slot of a user
//	plan.go       the order in which the users of a batch are sent to Redis
//	format.go     the versions of the stored format, and the marker that names the version
//	contract.go   the arguments and replies of the scripts over users, and the rules of a batch's groups
//	beat.go       the arguments and replies of heartbeats
//	pace.go       the arguments and replies of the pacers' scripts
//	count.go      the keys and fields of counted sends; answers.go has those of counted decisions
//	pacerlog.go   the stored logs of pacers
//	live.go       the arguments and replies of the logs of live changes
//	args.go       the arguments of a Redis command, in reused memory
//	constants.go  the constants that Go and Lua share, filled into the texts as ${NAME}
//	script.go     the texts of the scripts, and their SHA-1 hashes for EVALSHA
//
// Redis runs the whole text of a Lua script at each call. At each call, Redis creates every function and table of the
// script anew. Because of this cost, a script's functions for rare cases take arguments, and capture no local variables
// of the script.
package script
