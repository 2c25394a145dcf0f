package config

import (
	"fmt"
	"strings"
)

// homeOf returns the path of a key that belongs into one of the sections (outermost keys), such as "server.listen" for
// "listen", or "" if no section knows the key. To find the section, homeOf reads a small configuration for each
// section. A section with names that users choose, such as pacers, accepts any key and is no home.
func homeOf(key string, sections []string) string {
	for _, section := range sections {
		if knows(section, key) && !knows(section, "no-section-has-this-key") {
			return section + "." + key
		}
	}
	return ""
}

// The function knows reports whether a section of the configuration accepts a key.
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
