package pacing

import (
	"fmt"
	"slices"
	"strings"
)

// Policy holds the pacers of a configuration. A policy in use must not be changed. A nil *Policy has no pacers.
type Policy struct {
	Version string  // the version of the configuration
	Pacers  []Pacer // pacers with distinct names, in the order of the file
}

// Pacer returns the pacer with the given name. Pacer returns false if no pacer has the name.
func (p *Policy) Pacer(name string) (*Pacer, bool) {
	if p != nil {
		for i := range p.Pacers {
			if p.Pacers[i].Name == name {
				return &p.Pacers[i], true
			}
		}
	}
	return nil, false
}

// mostNames is the largest number of names in an error text.
const mostNames = 20

// PacerNames returns a list of the pacers' names, for error texts about an unknown pacer name.
func (p *Policy) PacerNames() string {
	var names []string
	if p != nil {
		for i := range p.Pacers {
			names = append(names, p.Pacers[i].Name)
		}
	}
	return listed("configured pacers", names)
}

// ShareNames returns a list of the names of the pacers' shares, for error texts about an unknown share name.
func ShareNames(pacers []Pacer) string {
	var names []string
	for i := range pacers {
		for _, share := range pacers[i].Shares {
			names = append(names, share.Name)
		}
	}
	return listed("shares", names)
}

// The function "listed" returns a text that begins with the title and lists the names in order, each once. After
// mostNames names, the text ends with the number of further names.
func listed(title string, names []string) string {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return title + ": none"
	}
	more := ""
	if n := len(names) - mostNames; n > 0 {
		names, more = names[:mostNames], fmt.Sprintf(" and %d more", n)
	}
	return title + ": " + strings.Join(names, ", ") + more
}
