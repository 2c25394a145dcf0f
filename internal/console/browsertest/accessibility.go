package browsertest

import (
	_ "embed"
	"strings"
)

//go:embed accessibility.js
var accessibility string

// Faults are what the page lacks for people who cannot see it, point at it, or
// tell its colours apart, a sentence each. The document may be a picture (SVG):
// then its texts alone are judged.
func (tab *Tab) Faults() []string {
	tab.t.Helper()
	// Dark pictures begin to come at some time after it got dark: a look in between sees none.
	var faults []string
	for range 3 {
		// A picture that does not come is a fault, after some looks.
		tab.Wait("[...document.images].every(i => i.complete && (i.naturalWidth > 0 || (i.looks = (i.looks ?? 0) + " +
			"1) > 100))")
		faults = Eval[[]string](tab, "%s", accessibility)
		if !strings.Contains(strings.Join(faults, "\n"), "does not show") {
			break
		}
	}
	return faults
}
