package config

import (
	"fmt"
	"strings"
)

// homeOf finds the section (outermost key) to which a misplaced key belongs, and returns the path of the key, such as
// "server.listen" for "listen". If no section knows the key, homeOf returns "". To find the section, homeOf reads a
// small configuration for each section. homeOf ignores sections that accept every key: in some sections, such as
// "pacers", users choose the names of the keys.
func homeOf(key string, sections []string) string {
	for _, section := range sections {
		if knows(section, key) && !knows(section, "no-section-has-this-key") {
			return section + "." + key
		}
	}
	return ""
}

// The function "knows" reports whether a section of the configuration accepts a key.
func knows(section, key string) bool {
	root, fault := tree(fmt.Appendf(nil, "%s: {%q: }", section, key))
	if fault != nil {
		return false
	}
	(&reader{Config: defaults()}).read(root)
	for _, fault := range root.Faults() {
		unknown := fault.Path == section+"."+key && strings.HasPrefix(fault.Rule, "is not a known key")
		if unknown || fault.Path == section { // the value of another section is no mapping
			return false
		}
	}
	return true
}
