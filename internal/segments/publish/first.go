package publish

import (
	"fmt"
	"slices"
)

// A Flaw is a reason to refuse the first publish to a location. In a first publish, the guard has no earlier generation
// (published version) for a comparison.
type Flaw string

// The constants emptySegments to BadRows are the flaws of a first publish. The values are the names of the flaws in the
// flag --allow-first and in the build file's field allow_first.
const (
	emptySegments Flaw = "empty-segments"
	emptySets     Flaw = "empty-sets"
	EmptyFiles    Flaw = "empty-files" // input files without a good row
	BadRows       Flaw = "bad-rows"    // bad rows, even if the build tolerates them
)

// Flaws lists the flaws that an operator can allow.
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
