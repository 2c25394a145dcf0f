// Package drills contains only tests. The tests follow the procedures in docs/operating.md with the real programs, real
// Redis servers, redis-cli and haproxy. During each procedure, callers send requests, and the tests compare the
// responses with the promises of capper. The environment variable CAPPER_DRILL_BEFORE is the path of a capper program
// of an earlier version. The test TestAnUpgradeIsNotNoticed starts this program, and then upgrades to the current
// version.
package drills
