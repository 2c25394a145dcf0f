// Package access says who may call and how fast: keys with their scopes, and
// the rates of clients, kept by this process or shared by all.
//
// # Admission
//
// Package admission bounds what calls may hold of the service: users being
// decided, memory of bodies and answers, connections, and the time in which a
// client must send or read.
//
// What all calls share is a Budget. It is shared fairly between clients: who
// holds most is refused before another is, and who sends half and stops, or
// does not read, is cut off when another needs the room. A Place is one call's
// part of the budgets of users and answers; the body's part is package body's.
// Connections bounds those of a listener, a Pace the time of one body or
// answer.
//
// # Listen
//
// Package listen opens the service's listeners and says who may reach it
// through them: loopback addresses only while calls need no keys, calls of a
// loopback listener by this machine's own names only, TLS with certificates that
// are read again when they change, and time-outs of connections.
package gate
