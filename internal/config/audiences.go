package config

import (
	"errors"

	"capper/internal/audience"
	"capper/internal/yamltree"
)

// maxAudiences is the maximum number of named audience expressions in a configuration. With at most maxAudiences names,
// the search for names that are similar to a misspelt name is fast.
const maxAudiences = 1000

// The method "audiences" reads the key "audiences" of a configuration file, which defines named audience expressions.
func (r *reader) audiences(v yamltree.Value) {
	texts, at := map[string]string{}, map[string]yamltree.Value{}
	v.Pairs(func(key string, _, val yamltree.Value) {
		text, before := "", len(v.Faults())
		yamltree.Text(&text)(val)
		if len(v.Faults()) == before { // an invalid expression does not prevent the check of other expressions
			texts[key], at[key] = text, val
		}
	})
	if n := len(texts); n > maxAudiences {
		v.Fault("must be at most %d audiences, got %d", maxAudiences, n)
		return
	}
	named, err := audience.NewNamed(texts)
	for _, fault := range faultsOf(err) {
		at[fault.Name].Fault("%v", fault.Err)
	}
	r.Audiences = named
}

// faultsOf splits a joined error into the errors about single expressions.
func faultsOf(err error) (faults []*audience.NamedError) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, err := range joined.Unwrap() {
		var fault *audience.NamedError
		if errors.As(err, &fault) {
			faults = append(faults, fault)
		}
	}
	return faults
}
