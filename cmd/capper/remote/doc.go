// Package remote is how commands reach a running service, how they say which of
// its users they are about, and what they say of its refusals.
package remote
