package config

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"capper/internal/capping"
	"capper/internal/server/gate"
	"capper/internal/yamltree"
)

// The method "reloadable" returns an error for each changed configuration key that takes effect only after a restart.
// The argument "was" holds the values of the previous file by key, and the argument "is" the values of the new file.
func (c *Config) reloadable(file string, next *Config, was, is map[string]string) error {
	faults := &yamltree.Faults{File: file}
	must := func(section string, same bool) {
		if !same {
			faults.List = append(faults.List, changes(section, was, is)...)
		}
	}
	must("server", reflect.DeepEqual(c.Server.fixed(), next.Server.fixed()))
	must("segments", reflect.DeepEqual(c.Segments, next.Segments))
	must("ids", c.IDs == next.IDs)
	must("store", reflect.DeepEqual(c.Store.fixed(), next.Store.fixed()))
	must("log", c.Log.Format == next.Log.Format)
	must("console", c.Console == next.Console && c.UserLink == next.UserLink && c.SecureCookies == next.SecureCookies)
	must("audit", c.Audit == next.Audit)
	must("tracing", c.Tracing == next.Tracing)
	if len(c.Server.Access.Keys) > 0 && len(next.Server.Access.Keys) == 0 && !next.Server.WithoutKeys {
		faults.List = append(faults.List, yamltree.Fault{Path: "server.api_keys",
			Rule: "must keep at least one key in a reload, because otherwise every user of this machine could call; " +
				"if that is intended, set server.without_keys: true"})
	}
	faults.List = append(faults.List, renumbered(c.Policy.Channels, next.Policy.Channels)...)
	faults.List = append(faults.List, c.unsuppressed(next)...)
	if len(faults.List) > 0 {
		return faults
	}
	return nil
}

// KeepsChannels returns an error if the configuration changes the numeric id of a channel, because stored sends contain
// this id. The argument "were" holds the numeric ids of channels that stored sends contain.
func (c *Config) KeepsChannels(file string, were map[string]uint8) error {
	channels := map[string]capping.Channel{}
	for name, number := range were {
		channels[name] = capping.Channel(number)
	}
	if found := renumbered(channels, c.Policy.Channels); len(found) > 0 {
		return &yamltree.Faults{File: file, List: found}
	}
	return nil
}

// The function "renumbered" returns a fault for each channel whose numeric id differs between the previous
// configuration ("was") and the new configuration ("is").
func renumbered(was, is map[string]capping.Channel) (found []yamltree.Fault) {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if now, ok := is[name]; ok && now != was[name] {
			found = append(found, yamltree.Fault{Path: "channels." + name,
				Rule: fmt.Sprintf("must stay %d, got %d: stored sends contain the number", was[name], now)})
		}
	}
	return found
}

// The variable "reloaded" lists the keys of the sections "server", "store" and "log" that a reload can change without a
// restart.
var reloaded = []string{
	"server.api_keys", "server.rate_limits", "server.without_keys", "log.level",
	"store.embedded.create", "store.redis.create", // these apply at the next start
}

// The method "fixed" returns a copy of the server settings without the settings that a reload can change. A comparison
// of two such copies finds only the changes that need a restart.
func (s Server) fixed() Server {
	s.Access, s.WithoutKeys = gate.Rules{}, false
	return s
}

// The method "fixed" returns a copy of the store settings without MustExist (the store must already exist), for a
// comparison with another copy. MustExist has an effect only at a start.
func (s Store) fixed() Store {
	s.Embedded.MustExist, s.Redis.Options.MustExist = false, false
	return s
}

// The function "changes" returns a fault for each key of a configuration section with a new value that a reload cannot
// apply.
func changes(section string, was, is map[string]string) (faults []yamltree.Fault) {
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		inSection := (path == section || strings.HasPrefix(path, section+".")) && !slices.ContainsFunc(reloaded,
			func(key string) bool { return strings.HasPrefix(path, key) })
		if inSection && was[path] != is[path] {
			faults = append(faults, yamltree.Fault{Path: path, Rule: fmt.Sprintf("requires a restart; the "+
				"configuration in force stays (%s, now %s)",
				given(was[path]), given(is[path]))})
		}
	}
	if len(faults) == 0 { // no key differs in the files, but a default that depends on another key has changed
		faults = append(faults, yamltree.Fault{Path: section, Rule: "requires a restart; the configuration in force " +
			"stays"})
	}
	return faults
}

func given(text string) string { return cmp.Or(text, "not given") }
