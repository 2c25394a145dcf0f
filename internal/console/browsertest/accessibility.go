package browsertest

import (
	_ "embed"
	"strings"
)

//go:embed accessibility.js
var accessibility string

// Faults returns a sentence for each accessibility problem of the page. Faults finds problems for people who cannot
// see the page, cannot use a pointer, or cannot distinguish the colours of the page. In SVG charts, Faults checks
// only the texts.
func (tab *Tab) Faults() []string {
	tab.t.Helper()
	// The browser begins to load dark charts some time after the switch to dark mode, so an early check would miss
	// them.
	var faults []string
	for range 3 {
		// Wait ends when every chart has loaded, or when 100 checks have found a chart that failed to load.
		tab.Wait("[...document.images].every(i => i.complete && (i.naturalWidth > 0 || (i.looks = (i.looks ?? 0) + " +
			"1) > 100))")
		faults = Eval[[]string](tab, "%s", accessibility)
		if !strings.Contains(strings.Join(faults, "\n"), "does not show") {
			break
		}
	}
	return faults
}
