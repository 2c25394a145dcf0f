// Package doctor checks the environment of a service, on the machine where the service runs or will run. For each
// problem, package doctor reports the recommended change and the reason for the change.
//
//	Check ──► Findings      one Check inspects one part, within its time limit
//	Run   ──► Report        all checks in parallel: a check that hangs or fails affects no other check
//
// The checks of package doctor cover the configuration and its files, certificates, clocks, and the limits of the
// process. Further checks of package doctor cover the segments and their cache, the location of the audit, the
// collector of traces, Redis, and the embedded store. Each Go file of package doctor contains the checks of one
// component. A developer adds a check by a function that returns a value of type check, and by a line in List. If the
// start of the service makes a similar check, package doctor calls the same code (packages app and config).
//
// The checks of package doctor do not disturb a running service. The checks of package doctor do not open a store, do
// not take a lock, and do not decide about users. A check may write a test object to S3 or a directory, in order to
// test permissions. After its attempt, the check removes the test object, and its finding names the object. Findings
// never contain secrets.
package doctor
