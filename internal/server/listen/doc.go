// Package listen opens the service's listeners and says who may reach it
// through them: loopback addresses only while calls need no keys, calls of a
// loopback listener by this machine's own names only, TLS with certificates that
// are read again when they change, and time-outs of connections.
package listen
