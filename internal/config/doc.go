// Package config is the configuration: one YAML file, read strictly into the
// types of those whom its keys are for.
//
//	bytes → yamltree (syntax, values, every fault with its line) → Config
//
// config.go names every key. What a key means, which default it has and what it
// must hold stands with the owner of its type: bounds with server/admission, keys
// and rates with server/access and capping, limits with capping, pacers with
// pacing, the names of segments with segments, the stores with the stores. Here
// are the keys that only the service itself knows, such as how it listens and
// stops, what is written otherwise than its owner has it (create is the opposite
// of MustExist), and how far a file may go where the owner takes more. Nothing of
// the reading is in Config.
//
// Secrets are not in the file: they come from the environment, or from files
// that it names. API keys are there as SHA-256 only.
//
// A Watcher reads the file again when it changes. What can change while the
// service runs (channels, limits, pacers, API keys, rate limits) is swapped whole; a
// file with a fault, or one that changes anything else, is refused whole and
// the configuration in force stays. It holds no lock while it parses and applies.
package config
