// Package doctor checks everything that a service needs, on the machine where it runs or will run. It reports each
// fault with the change to make and the reason.
//
//	Check ──► Findings      one Check inspects one part, within its time limit
//	Run   ──► Report        all checks in parallel: a check that hangs or fails affects no other check
//
// The checks cover the configuration and its files, certificates, the source and the cache of the segments, the audit
// location, the collector of traces, clocks, Redis, the embedded store, and the limits of the process. Each file
// holds the checks of one part. A new check is a function that returns a check, and a line in List. A check of
// something that start-up also verifies calls the code of start-up (packages app and config).
//
// Checks do not disturb a running service. Checks open no store, take no lock and decide nothing. A check that writes
// an object to test a right removes the object, and its finding names the object. No finding contains a secret.
package doctor
