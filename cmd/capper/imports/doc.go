// Package imports is `capper import`: it reads files of sends that were made elsewhere, sorts them by namespace and
// time, and has a running service record them.
//
// Everything is read before anything is sent, so that a file with faults changes nothing. Rows are
// sorted a million at a time, in memory; where there are more, each such run goes to a file of a temporary
// directory and they are merged while they are sent. A send takes about 30 bytes there and its message id.
//
// A call holds rows of one namespace. The oldest of each are sent first, a few batches at one time, but those of a user
// one after the other: of sends that are the same the service records the one that it sees first. The service knows a
// send again, so a batch that was not answered is sent as it was, and a whole import that was broken off is begun anew.
package imports
