package publish

import (
	"fmt"
	"slices"
)

// Flaw is a reason to refuse the first publish to a location, where the guard has no earlier generation for a
// comparison.
type Flaw string

// These constants are the flaws of a first publish, under the names that the option --allow-first and the key
// allow_first use.
const (
	emptySegments Flaw = "empty-segments"
	emptySets     Flaw = "empty-sets"
	EmptyFiles    Flaw = "empty-files" // files without a good row
	BadRows       Flaw = "bad-rows"    // any bad rows, even tolerated ones
)

// Flaws lists the flaws that an operator can allow by name.
var Flaws = []Flaw{emptySegments, emptySets, EmptyFiles, BadRows}

// judgeFirst returns the reasons to refuse a first publish, except the flaws that the operator has allowed.
func (b *Bounds) judgeFirst(p *Proposal) (refusals []string) {
	refuse := func(flaw Flaw, format string, args ...any) {
		if !slices.Contains(b.AllowFirst, flaw) {
			refusals = append(refusals, "in a first publish "+fmt.Sprintf(format, args...)+": use --allow-first "+
				string(flaw)+" if this is intended")
		}
	}
	for i, name := range p.Candidate.Names {
		if p.Candidate.Bitmaps[i].Cardinality() == 0 {
			refuse(emptySegments, "segment %q has no users", name)
		}
	}
	for _, s := range p.Candidate.Sets {
		if s.Bitmap.Cardinality() == 0 {
			refuse(emptySets, "set %q has no users", s.Name)
		}
	}
	for _, file := range p.EmptyFiles {
		refuse(EmptyFiles, "%s has no valid row", file)
	}
	if p.BadRows > 0 {
		refuse(BadRows, "%d rows are bad", p.BadRows)
	}
	return refusals
}
