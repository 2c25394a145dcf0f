package browsertest

import "testing"

// TestInABrowser is one test, as all of it is done in one browser.
func TestInABrowser(t *testing.T) {
	b := Start(t)
	for name, test := range map[string]func(t *testing.T, b *Browser){
		"what pages do is watched": testWatch,
		"a tab":                    testTab,
		"faults are found":         testFaults,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}
