package pacing

// Policy is the pacers of a configuration, by name. It is not changed after it has
// been handed over. The nil policy has none.
type Policy struct {
	Version string  // names the configuration that they came from
	Pacers  []Pacer // in the order of the file, names distinct
}

// Pacer is the one of the name.
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
