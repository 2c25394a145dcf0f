// Package script knows how the engine talks to its Lua scripts: which keys
// hold whom (Keyspace), in which order the users of a batch are asked (Plan),
// what each script's arguments and replies are (contract.go), and the scripts'
// texts. It speaks to no server but through a client that it is given.
package script
