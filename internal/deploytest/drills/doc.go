// Package drills has only tests. The tests follow the procedures of docs/operating.md with the real programs, real
// Redis servers, redis-cli and haproxy, while callers continue to ask. The tests compare the answers with the
// promises of capper. CAPPER_DRILL_BEFORE names a program of an earlier version, with which TestAnUpgradeIsNotNoticed
// begins.
package drills
