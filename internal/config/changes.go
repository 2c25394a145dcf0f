package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"capper/internal/server/access"
	"capper/internal/yamltree"
)

// reloadable reports what of next can only change at a start, key by key. was
// and is are what the two files give.
func (c *Config) reloadable(file string, next *Config, was, is map[string]string) error {
	faults := &yamltree.Faults{File: file}
	must := func(section string, same bool) {
		if !same {
			faults.List = append(faults.List, changes(section, was, is)...)
		}
	}
	must("server", reflect.DeepEqual(c.Server.fixed(), next.Server.fixed()))
	must("segments", reflect.DeepEqual(c.Segments, next.Segments))
	must("store", reflect.DeepEqual(c.Store, next.Store))
	must("log", c.Log.Format == next.Log.Format)
	must("console", c.Console == next.Console)
	must("audit", c.Audit == next.Audit)
	must("tracing", c.Tracing == next.Tracing)
	if len(c.Server.Access.Keys) > 0 && len(next.Server.Access.Keys) == 0 && !next.Server.WithoutKeys {
		faults.List = append(faults.List, yamltree.Fault{Path: "server.api_keys",
			Rule: "must not lose its last key by a reload: everybody on this machine could call; if that is meant, say server.without_keys: true"})
	}
	for name, number := range c.Policy.Channels {
		if now, ok := next.Policy.Channels[name]; ok && now != number {
			faults.List = append(faults.List, yamltree.Fault{Path: "channels." + name,
				Rule: fmt.Sprintf("must stay %d, got %d: the number is stored in the logs", number, now)})
		}
	}
	if len(faults.List) > 0 {
		return faults
	}
	return nil
}

// reloaded are the keys of server and log that a reload puts in force.
var reloaded = []string{"server.api_keys", "server.rate_limits", "server.without_keys", "log.level"}

// fixed is what of s a reload does not change.
func (s Server) fixed() Server {
	s.Access, s.WithoutKeys = access.Rules{}, false
	return s
}

// changes are the faults of the keys of a section that are not the same.
func changes(section string, was, is map[string]string) (faults []yamltree.Fault) {
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		inSection := (path == section || strings.HasPrefix(path, section+".")) && !slices.ContainsFunc(reloaded, func(key string) bool { return strings.HasPrefix(path, key) })
		if inSection && was[path] != is[path] {
			faults = append(faults, yamltree.Fault{Path: path, Rule: fmt.Sprintf("changes only at a start; the configuration in force stays (%s, now %s)",
				given(was[path]), given(is[path]))})
		}
	}
	if len(faults) == 0 { // a default that depends on another key
		faults = append(faults, yamltree.Fault{Path: section, Rule: "changes only at a start; the configuration in force stays"})
	}
	return faults
}

func given(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}
