// Package drills contains only tests. The tests in package drills follow the procedures in docs/operating.md with the
// real programs, real Redis servers, redis-cli and haproxy, while callers send requests. While the callers send
// requests, the tests compare the responses with the promises of capper. The environment variable CAPPER_DRILL_BEFORE
// is the path of a capper program of an earlier version. TestAnUpgradeIsNotNoticed begins with the program at the
// path in CAPPER_DRILL_BEFORE, and then upgrades it.
package drills
