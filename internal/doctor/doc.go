// Package doctor checks the environment of a service, on the machine where the service runs or will run. For each
// problem, package doctor reports the recommended change and the reason for the change.
//
//	Check ──► Findings      one Check inspects one part, within its time limit
//	Run   ──► Report        all checks in parallel: a check that hangs or fails affects no other check
//
// The checks of package doctor cover the configuration and its files, certificates, clocks, and the limits of the
// process. Further checks cover the segments and their cache, the location of the audit, the collector of traces,
// Redis, and the embedded store. Each Go file of package doctor contains the checks of one component. A new check needs
// a function that returns a value of type check, and a line in List. If the service makes a similar check at its start,
// package doctor calls the service's code (packages app and config).
//
// The checks of package doctor do not disturb a running service. The checks do not open a store, do not take a lock,
// and do not decide about users. To test permissions, a check may write a test object to S3 or a directory. The check
// then removes the test object, and the finding names the object. Findings never contain secrets.
package doctor
