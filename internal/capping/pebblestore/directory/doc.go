// Package directory is the directory that a database lives in: what Pebble
// writes to, and what must be found in it again. It knows files, no keys.
//
//	Pebble ──► Disk ──► file system      a refused write freezes all files, as a power cut does
//	            └─────► FILES            which write-ahead logs and manifests there must be
//
// Pebble panics when its write-ahead log or manifest cannot be written, in part
// with a mutex in a state that ends the process whoever recovers. So it never
// sees such an error: Disk reports it and freezes the files. From then on nothing
// in the directory changes, while Pebble is told that all went well.
//
// Pebble also opens a database whose write-ahead log is gone without what was in
// it. So the file FILES has the names of the write-ahead logs and manifests,
// noted after they are made and before they are removed; a start demands them.
package directory
