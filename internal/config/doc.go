// Package config is the configuration: one YAML file whose types are the
// manual, read strictly.
//
//	bytes → syntax tree → values (every fault noted with its line) → Config
//
// The tree is walked by hand rather than decoded by reflection, because a
// decoder stops at the first fault, rounds 3.7 to 3 and keeps the last of two
// equal keys. Load reports every fault of a file at once.
//
// Secrets are not in the file: they come from the environment (see Secrets).
// API keys are there as SHA-256 only.
//
// A Watcher reads the file again when it changes. What can change while the
// service runs (channels, limits, API keys, rate limits) is swapped whole; a
// file with a fault, or one that changes anything else, is refused whole and
// the configuration in force stays.
package config
