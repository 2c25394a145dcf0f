package build

import (
	"errors"
	"fmt"
	"slices"

	"capper/internal/segments"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish/guard"
)

// Plan says what to build: what the flags or the build file ask for.
type Plan struct {
	// Segments in order of precedence. Empty: those that Order names, from the tables.
	Segments []Definition
	// Sets are named definitions that others refer to; they are not published.
	Sets []Definition
	// Tables hold ids with the names of their segments. The rows of a segment
	// join the inputs of the segment with that name; every other name is a bad row.
	Tables []ingest.Input
	// Precedence resolves overlaps: a user in several segments stays in the
	// first of them. False: overlaps are an error.
	Precedence bool
	// Order, when not empty, names all segments in order of precedence, and
	// asks for Precedence.
	Order []string
	// MaxBadRows are left out and counted instead of being an error.
	MaxBadRows ingest.Tolerance
	// Bounds are what may go live without somebody's word for it. Run leaves them
	// to its caller.
	Bounds guard.Bounds
}

// Definition says what one segment or set is made of: the users of the inputs and of every Union, that are
// also in every Intersect, and in no Minus. The names are those of segments or
// sets, in any order, as they are before overlaps are resolved.
type Definition struct {
	Name      string
	Inputs    []ingest.Input
	Union     []string
	Intersect []string
	Minus     []string
}

// check reports every fault of the plan at once.
func (p *Plan) check() error {
	if len(p.Segments) == 0 && len(p.Tables) == 0 {
		return errors.New("nothing to build: no segment and no table is given")
	}
	var faults []error
	if len(p.Segments)+len(p.Order) == 0 {
		faults = append(faults, errors.New("a table needs the names of its segments, so that a misspelt one does not become a segment: "+
			"--precedence NAME,…, or segments in the build file"))
	}
	if len(p.Segments) > segments.MaxSegments {
		faults = append(faults, fmt.Errorf("%d segments, at most %d are possible", len(p.Segments), segments.MaxSegments))
	}
	known := map[string]bool{}
	for _, r := range p.definitions() {
		if err := segments.CheckName(r.Name); err != nil {
			faults = append(faults, err)
		}
		if known[r.Name] {
			faults = append(faults, fmt.Errorf("segment or set %q is there twice", r.Name))
		}
		known[r.Name] = true
	}
	for _, r := range p.definitions() {
		if len(r.Inputs)+len(r.Union)+len(r.Intersect) == 0 && len(p.Tables) == 0 {
			faults = append(faults, fmt.Errorf("segment or set %q: no inputs and no union", r.Name))
		}
		for _, name := range r.refs() {
			if !known[name] {
				faults = append(faults, fmt.Errorf("segment or set %q refers to %q, which is neither a segment nor a set", r.Name, name))
			}
		}
	}
	if len(faults) == 0 {
		faults = append(faults, p.checkCycles())
	}
	return errors.Join(faults...)
}

func (p *Plan) definitions() []Definition { return slices.Concat(p.Segments, p.Sets) }

func (r *Definition) refs() []string { return slices.Concat(r.Union, r.Intersect, r.Minus) }

func (p *Plan) checkCycles() error {
	byName := map[string]Definition{}
	for _, r := range p.definitions() {
		byName[r.Name] = r
	}
	done := map[string]bool{}
	var visit func(name string, path []string) error
	visit = func(name string, path []string) error {
		if slices.Contains(path, name) {
			return fmt.Errorf("%q is made from itself: %q", name, append(path, name))
		}
		if done[name] {
			return nil
		}
		r := byName[name]
		for _, ref := range r.refs() {
			if err := visit(ref, append(path, name)); err != nil {
				return err
			}
		}
		done[name] = true
		return nil
	}
	for _, r := range p.definitions() {
		if err := visit(r.Name, nil); err != nil {
			return err
		}
	}
	return nil
}
