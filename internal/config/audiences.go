package config

import "capper/internal/yamltree"

// maxAudiences keeps what /v1/limits and an expression's names go through short.
const maxAudiences = 1000

// audiences reads expressions by name.
func (r *reader) audiences(v yamltree.Value) {
	v.Pairs(func(key string, at, val yamltree.Value) {
		setName(at, key)
		expression := ""
		yamltree.Text(&expression)(val)
		r.Audiences[key] = expression
	})
	if n := len(r.Audiences); n > maxAudiences {
		v.Fault("must be at most %d audiences, got %d", maxAudiences, n)
	}
}
