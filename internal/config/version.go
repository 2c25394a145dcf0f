package config

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"capper/internal/objects"
	"capper/internal/yamltree"
)

// own are the keys in which instances of one fleet may differ: where an instance listens, where its files lie, by
// which addresses it finds the store that all of them share, and what it tells of itself. None of them decides.
var own = []string{
	"log", "tracing",
	"server.listen", "server.admin_listen", "server.host_names", "server.tls",
	"segments.cache_dir",
	"store.embedded.path",
	"store.redis.addrs", "store.redis.password_file", "store.redis.create",
	"store.redis.tls.ca_file", "store.redis.tls.cert_file", "store.redis.tls.key_file",
	"audit.spool",
}

// versionOf is the version of a configuration: the first 12 hex digits of a SHA-256 over all that instances of one
// fleet have to agree on. Comments, layout and the keys of own do not change it; every other key does.
func versionOf(root yamltree.Value) string {
	text := root.Canonical(func(v yamltree.Value) (as string, taken bool) {
		if slices.Contains(own, v.Path()) {
			return "", true
		}
		if to, isText := v.Word(); isText && v.Path() == "audit.to" && !objects.IsURL(to) {
			return "a directory", true // that an instance records is no matter of its own
		}
		return "", false
	})
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:12]
}

// setVersion sets the version wherever it is told.
func (c *Config) setVersion(version string) {
	c.Version, c.Policy.Version, c.Pacers.Version = version, version, version
}
