package browsertest

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// testLive checks that a change in the service appears on the page without moving the reader's position.
func testLive(t *testing.T, s *suite) {
	service := Serve(t, Setup{})
	tab := s.Tab(t, service.URL)
	tab.Open("/console/")
	Eval[any](tab, "document.querySelector('main').stays = true")
	focus := "document.querySelector('main .scroll, main summary')"
	Eval[any](tab, "(%s).focus()", focus)
	generation := service.joined()
	look(tab)
	tab.Wait("document.querySelector('#states').textContent.includes(%q)", generation)
	require.True(t, Eval[bool](tab, "document.querySelector('main').stays === true"), "no reload")
	require.True(t, Eval[bool](tab, "document.activeElement === %s", focus), "what had the focus has it")

	require.NoError(t, service.app.Stop())
	look(tab)
	tab.Wait("document.querySelector('#live').innerText.includes('cannot be reached')")
	require.Empty(t, tab.Faults(), "the notice can be read")
	require.NotEmpty(t, tab.Misbehaved(), "what failed stands in the console")
}

// look makes a page that updates itself do so now, in the same way as a return to its tab.
func look(tab *Tab) { Eval[any](tab, "document.dispatchEvent(new Event('visibilitychange'))") }

// testCSV checks that a table can be downloaded as a file with numbers for programs.
func testCSV(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Reader)
	exports := 0
	for _, path := range s.pages {
		tab.Open(path)
		for _, to := range tab.links("a[download]") {
			exports++
			kind := Eval[string](tab, "fetch(%q).then(r => r.headers.get('Content-Type') + ' ' + "+
				"r.headers.get('Content-Disposition'))", to)
			require.Regexp(t, `^text/csv; charset=utf-8 attachment; filename="capper-[a-z-]+\.csv"$`, kind)
			rows, err := csv.NewReader(strings.NewReader(Eval[string](tab, "fetch(%q).then(r => r.text())",
				to))).ReadAll()
			require.NoError(t, err, to)
			shown := Eval[[][]string](tab, "[...[...document.querySelectorAll('a[download]')].find(a => a.pathname "+
				"+ a.search === %q).closest('section').querySelectorAll('tr')].map(r => [...r.cells].map(c => "+
				"c.innerText))", to)
			require.Len(t, rows, len(shown), to)
			for i, row := range rows {
				require.Len(t, row, len(shown[i]), to)
				for _, cell := range row {
					require.NotRegexp(t, `^[=+@\t]`, cell, "a spreadsheet would calculate")
				}
			}
		}
	}
	require.Greater(t, exports, 1)

	var limits api.Policy
	s.keyed.Get("/v1/limits", &limits)
	downloaded := tab.Download("/console/limits", "#table-limits a[download]")
	require.Contains(t, downloaded, "email-day")
	require.Contains(t, downloaded, "\r\n")
	require.Equal(t, http.StatusOK, tab.Open("/console/limits"))
	require.Contains(t, tab.Text("main"), limits.Version)
}
