// Package messages answers what is asked about messages: what became of each, by
// channel, and to give back all sends of one.
//
// A caller with a namespace sees its own messages only, whatever it asks for. One
// without sees all of them, each with its namespace, and names the messages of another
// one by the parameter namespace.
package messages
