// Package drills has no code of its own: its tests do with the programs, real Redis servers, redis-cli and
// a haproxy what docs/operating.md tells operators to do, while callers go on asking, and hold the
// answers to what capper promises. CAPPER_DRILL_BEFORE names a program of an earlier version that
// TestAnUpgradeIsNotNoticed begins with.
package drills
