package config

import (
	"slices"

	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server/gate"
	"capper/internal/yamltree"
)

// clientRules reads the section "clients" of a configuration file. The section "clients" lists, for each client, the
// permitted pacers and shares (reserved parts of a pacer's permits). The scopes of a client's API keys also limit what
// the client may do.
func (r *reader) clientRules(v yamltree.Value) {
	r.Server.Access.Pacers, r.Server.Access.Shares = map[string][]string{}, map[string]gate.Shares{}
	v.Pairs(func(client string, at, val yamltree.Value) {
		r.bound = append(r.bound, at)
		var shares gate.Shares
		given := val.Object(map[string]yamltree.Field{
			"pacers": func(v yamltree.Value) { r.Server.Access.Pacers[client] = r.boundPacers(v) },
			"share":  func(v yamltree.Value) { shares.Own = r.shareOf(v) },
			"shares": func(v yamltree.Value) { shares.May = r.sharesOf(v) },
		})
		if given["share"] || given["shares"] {
			r.Server.Access.Shares[client] = shares
		} else if val.IsMapping() && !given["pacers"] {
			val.FaultOf("pacers", "is required: the pacers for which the client may ask; or give share, or shares")
		}
	})
}

// boundPacers reads the list of pacers that a client may use. If the list is empty, boundPacers records an error,
// because operators can forbid all pacers more clearly by an API key without the scope "filter".
func (r *reader) boundPacers(v yamltree.Value) (names []string) {
	before := len(v.Faults())
	v.List(func(v yamltree.Value) {
		name, ok := v.Text()
		switch {
		case !ok:
			return
		case !capping.IsName(name):
			v.Fault(capping.NameRule, name)
		case slices.Contains(names, name):
			v.Fault("must be unique: %q is given twice", name)
		default:
			r.pacersOfClients = append(r.pacersOfClients, v)
		}
		names = append(names, name)
	})
	if len(names) == 0 && len(v.Faults()) == before {
		v.Fault("must name at least one pacer; leave the client out to allow all pacers")
	}
	return names
}

// shareOf reads the name of a share (reserved part of a pacer's permits).
func (r *reader) shareOf(v yamltree.Value) string {
	name, ok := v.Text()
	switch {
	case !ok:
	case !capping.IsName(name):
		v.Fault(capping.NameRule, name)
	default:
		r.sharesOfClients = append(r.sharesOfClients, v)
	}
	return name
}

// sharesOf reads the list of shares (reserved parts of a pacer's permits) that calls of a client may name.
func (r *reader) sharesOf(v yamltree.Value) (names []string) {
	before := len(v.Faults())
	v.List(func(v yamltree.Value) {
		name := r.shareOf(v)
		if slices.Contains(names, name) {
			v.Fault("must be unique: %q is given twice", name)
		}
		names = append(names, name)
	})
	if len(names) == 0 && len(v.Faults()) == before {
		v.Fault("must name at least one share")
	}
	return names
}

// checkClients checks that each client has an API key, and that the pacers and shares (reserved parts of permits) of
// each client are configured.
func (r *reader) checkClients() {
	for _, at := range r.bound {
		client := at.Token()
		if !slices.ContainsFunc(r.Server.Access.Keys, func(k gate.Key) bool { return k.Client == client }) {
			at.Fault("must be the client of a key in server.api_keys, got %q", client)
		}
	}
	for _, at := range r.pacersOfClients {
		name, _ := at.Text()
		if _, known := r.Pacers.Pacer(name); !known {
			at.Fault("must be a configured pacer, got %q (%s)", name, r.Pacers.PacerNames())
		}
	}
	for _, at := range r.sharesOfClients {
		name, _ := at.Text()
		if !slices.ContainsFunc(r.Pacers.Pacers, func(p pacing.Pacer) bool { return p.HasShare(name) }) {
			at.Fault("must be a share of a configured pacer, got %q (%s)", name, pacing.ShareNames(r.Pacers.Pacers))
		}
	}
}
