package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reloadable reports what of next can only change at a start, key by key.
func (c *Config) reloadable(file string, next *Config) error {
	faults := &Faults{File: file}
	must := func(section string, same bool) {
		if !same {
			faults.List = append(faults.List, changes(section, c.leaves, next.leaves)...)
		}
	}
	must("server", reflect.DeepEqual(c.Server.fixed(), next.Server.fixed()))
	must("segments", reflect.DeepEqual(c.Segments, next.Segments))
	must("store", reflect.DeepEqual(c.Store, next.Store))
	must("log", c.Log == next.Log)
	if len(c.Server.APIKeys) > 0 && len(next.Server.APIKeys) == 0 && !next.Server.WithoutKeys {
		faults.List = append(faults.List, Fault{Path: "server.api_keys",
			Rule: "must not lose its last key by a reload: everybody on this machine could call; if that is meant, say server.without_keys: true"})
	}
	for name, number := range c.Policy.Channels {
		if now, ok := next.Policy.Channels[name]; ok && now != number {
			faults.List = append(faults.List, Fault{Path: "channels." + name,
				Rule: fmt.Sprintf("must stay %d, got %d: the number is stored in the logs", number, now)})
		}
	}
	if len(faults.List) > 0 {
		return faults
	}
	return nil
}

// reloaded are the keys of server that a reload puts in force.
var reloaded = []string{"server.api_keys", "server.rate_limits", "server.without_keys"}

// fixed is what of s a reload does not change.
func (s Server) fixed() Server {
	s.APIKeys, s.RateLimit, s.ClientLimits, s.clientKeys, s.WithoutKeys = nil, RateLimit{}, nil, nil, false
	return s
}

// changes are the faults of the keys of a section that are not the same.
func changes(section string, was, is map[string]string) (faults []Fault) {
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		inSection := strings.HasPrefix(path, section+".") && !slices.ContainsFunc(reloaded, func(key string) bool { return strings.HasPrefix(path, key) })
		if inSection && was[path] != is[path] {
			faults = append(faults, Fault{Path: path, Rule: fmt.Sprintf("changes only at a start; the configuration in force stays (%s, now %s)",
				given(was[path]), given(is[path]))})
		}
	}
	if len(faults) == 0 { // a default that depends on another key
		faults = append(faults, Fault{Path: section, Rule: "changes only at a start; the configuration in force stays"})
	}
	return faults
}

func given(text string) string {
	if text == "" {
		return "not given"
	}
	return text
}

// leavesOf are the scalars of a file by path.
func leavesOf(v value, into map[string]string) {
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		v.pairs(func(_ string, _, val value) { leavesOf(val, into) })
	case *ast.SequenceNode:
		v.list(func(v value) { leavesOf(v, into) })
	case nil:
	default:
		into[v.path] = n.GetToken().Value
	}
}
