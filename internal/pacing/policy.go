package pacing

// Policy holds the pacers of a configuration by name. A policy in use must not be changed. The nil policy
// has no pacers.
type Policy struct {
	Version string  // the version of the configuration
	Pacers  []Pacer // pacers with distinct names, in the order of the file
}

// Pacer returns the pacer with the given name, and false for an unknown name.
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
