// Package config reads the service's configuration: one YAML file, parsed strictly into the types of the packages
// that use the settings.
//
//	bytes → yamltree (syntax, values, every fault with its line) → Config
//
// The file config.go names every key. The meaning, default and rule of a key belong to the package of its type: bounds,
// keys and rates to server/gate and capping, limits to capping, pacers to pacing, names of segments to segments, and
// the stores to their packages. This package owns three kinds of rules. The first kind are keys of the service itself,
// such as how it listens and stops. The second are keys written differently from their owner's field, such as create,
// the opposite of MustExist. The third are limits of the file that are stricter than the owner's. A Config keeps no
// trace of the file's syntax.
//
// The file contains no secrets. Secrets come from the environment, or from files that the configuration names. API
// keys are stored as SHA-256 hashes only.
//
// A Watcher reads the file again when it changes. It replaces all settings that can change at run time together:
// channels, limits, pacers, API keys and rate limits. It refuses a whole file that has a fault or that changes
// another setting, and then the current configuration remains. The Watcher holds no lock while it parses and applies
// a file.
package config
