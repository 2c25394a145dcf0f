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
	tab.Wait("[...document.images].every(i => i.complete)") // dark pictures come when it gets dark
	return Eval[[]string](tab, "%s", accessibility)
}
