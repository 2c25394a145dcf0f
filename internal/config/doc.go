// Package config reads the configuration of the service. The configuration is one YAML file. Package config parses the
// file strictly, into Go types of the packages that use the settings.
//
//	bytes → yamltree (syntax, values, every fault with its line) → Config
//
// The file config.go lists all keys. The package that defines the Go type of a key also defines the meaning, the
// default and the rule of the key. For example, packages server/gate and capping define bounds, API keys and rates, and
// package capping defines limits. Package pacing defines pacers, package segments defines the names of segments, and
// each store's package defines the keys of the store. Package config itself defines rules for keys of the service
// itself, such as the network listeners. Package config also defines limits that are stricter than in the other
// packages, and rules for keys that differ from their Go field. For example, the key "create" has the opposite value of
// the field MustExist. A Config does not depend on the syntax of the file.
//
// The configuration file contains no secrets. Secrets come from the environment, or from other files that the
// configuration names. The configuration contains API keys only as SHA-256 hashes.
//
// A Watcher reads the configuration file again when the file changes. In one step, the Watcher replaces all settings
// that can change at run time: channels, limits, pacers, API keys and rate limits. If the file has an error, or changes
// a setting that needs a restart, the Watcher rejects the whole file and keeps the current configuration. The Watcher
// holds no lock while it parses and applies a file.
package config
