package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"capper/internal/objects"
	"capper/internal/yamltree"
)

// The variable "own" lists the configuration keys in which the instances of a fleet may differ, such as listening
// addresses, paths of files and logging. The keys in the list "own" do not affect decisions about users.
var own = []string{
	"log", "tracing",
	"server.listen", "server.admin_listen", "server.host_names", "server.tls",
	"segments.cache_dir",
	"store.embedded.path",
	"store.redis.addrs", "store.redis.password_file", "store.redis.create",
	"store.redis.tls.ca_file", "store.redis.tls.cert_file", "store.redis.tls.key_file",
	"audit.spool",
}

// versionOf returns the version of a configuration: the first 12 hexadecimal digits of a SHA-256 hash. The hash covers
// all keys on which the instances of a fleet (instances with one store) must agree. Comments, layout and the keys in
// the list "own" do not change the version of a configuration. All other keys change the version.
func versionOf(root yamltree.Value) string {
	text := root.Canonical(func(v yamltree.Value) (as string, taken bool) {
		if slices.Contains(own, v.Path()) {
			return "", true
		}
		if to, isText := v.Word(); isText && v.Path() == "audit.to" && !objects.IsURL(to) {
			return "a directory", true // the directories may differ, but all instances or none must have an audit
		}
		return "", false
	})
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:12]
}

// setVersion sets the version in every field of the Config that contains the version.
func (c *Config) setVersion(version string) {
	c.Version, c.Policy.Version, c.Pacers.Version = version, version, version
}
