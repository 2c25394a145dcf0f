// Package doctor looks at everything a service needs, from the machine that it runs on or will
// run on, and says what is not as it should be, what to change and why.
//
//	Check ──► Findings      one Check looks at one thing, within its time
//	Run   ──► Report        all checks, each by itself: one that hangs or fails costs only its own
//
// What is looked at stands in package checks, a file for each room; a new room is a file there
// and a line in its list. A check disturbs nobody: it opens no store, takes no lock, decides
// nothing, and removes what it wrote to try a right, which its finding names. No finding holds a
// secret.
package doctor
