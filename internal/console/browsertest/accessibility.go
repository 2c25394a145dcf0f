package browsertest

import (
	_ "embed"
	"strings"
)

//go:embed accessibility.js
var accessibility string

// Faults returns a sentence for each accessibility problem of the page: for people who cannot see it, cannot use a
// pointer, or cannot tell its colours apart. In an SVG picture, only the texts are checked.
func (tab *Tab) Faults() []string {
	tab.t.Helper()
	// Dark pictures start to load some time after the switch to dark mode, so an early check would see none.
	var faults []string
	for range 3 {
		// A picture that fails to load counts as a fault after several checks.
		tab.Wait("[...document.images].every(i => i.complete && (i.naturalWidth > 0 || (i.looks = (i.looks ?? 0) + " +
			"1) > 100))")
		faults = Eval[[]string](tab, "%s", accessibility)
		if !strings.Contains(strings.Join(faults, "\n"), "does not show") {
			break
		}
	}
	return faults
}
