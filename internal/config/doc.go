// Package config reads the configuration of the service. The configuration is one YAML file. Package config parses
// the file strictly into types of the packages that use the settings.
//
//	bytes → yamltree (syntax, values, every fault with its line) → Config
//
// The file config.go lists all keys. The package of a key's Go type defines the meaning, the default and the rule of
// the key. For example, packages server/gate and capping define bounds, API keys and rates, and package capping defines
// limits. Package pacing defines pacers, package segments defines the names of segments, and each store's package
// defines the keys of the store. Package config itself defines three kinds of rules. The first kind of rules in package
// config concerns configuration keys of the service itself, such as its network listeners and the time limits for its
// stop. The second kind of rules in package config concerns keys that differ from the field that they set. For example,
// the key "create" is the opposite of the field MustExist. The third kind of rules in package config are limits that
// are stricter than the limits in the package of the key's type. A Config contains nothing about the syntax of the
// file.
//
// The configuration file contains no secrets. Secrets come from the environment, or from other files that the
// configuration names. The configuration contains API keys only as SHA-256 hashes.
//
// A Watcher reads the configuration file again when the file changes. The Watcher replaces all settings that can change
// at run time together: channels, limits, pacers, API keys and rate limits. If the file has an error, or changes a
// setting that needs a restart, the Watcher rejects the whole file and keeps the current configuration. The Watcher
// holds no lock while it parses and applies a file.
package config
