package browsertest

import (
	_ "embed"
)

//go:embed accessibility.js
var accessibility string

// Faults are what the page lacks for people who cannot see it, point at it, or
// tell its colours apart, a sentence each. The document may be a picture (SVG):
// then its texts alone are judged.
func (tab *Tab) Faults() []string {
	tab.t.Helper()
	// Dark pictures come when it gets dark; one that does not come is a fault, after some looks.
	tab.Wait("[...document.images].every(i => i.complete && (i.naturalWidth > 0 || (i.looks = (i.looks ?? 0) + 1) > 100))")
	return Eval[[]string](tab, "%s", accessibility)
}
