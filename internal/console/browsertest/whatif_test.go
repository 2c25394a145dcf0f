package browsertest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// testWhatIf changes a number on the page Limits, and looks at the answer on every screen.
func testWhatIf(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Reader)
	tab.Open("/console/limits")
	Eval[any](tab, "document.querySelector('#limit-1').value = 'active/daily'")
	tab.Fill("#max-1", "1")
	tab.Leave(func() { tab.Click("form:has(#max-1) button") })
	require.Contains(t, tab.Path(), "/console/whatif?limit=active%2Fdaily&max=1&since=")
	require.Contains(t, tab.Text("#found h2"), "daily of active, now 2: 1")
	require.Contains(t, tab.Text("#found"), "would have received fewer messages")
	require.NotEmpty(t, tab.rows("segments"))
	require.NotEmpty(t, tab.rows("campaigns"))
	tab.plain(t)
	result := tab.Path()

	tab.Open(result)
	tab.Fill("#max-2", "3")
	Eval[any](tab, "document.querySelector('#limit-2').value = 'weekly'")
	tab.Leave(func() { tab.Press("\r") })
	require.Contains(t, tab.Text("#found h2"), "weekly of every segment")

	tab.Open("/console/whatif?limit=active%2Fdaily&max=1001")
	require.Contains(t, tab.Text("[role=alert]"), "from 0 to 1000")
	tab.plain(t)

	tab.Open("/console/try?audience=engaged&channel=push&other=active&other=country%2Fmy")
	require.Len(t, tab.rows("overlap"), 3)
	require.Len(t, tab.rows("messages"), 3)
	require.NotEmpty(t, tab.rows("used"))
	tab.plain(t)
}

// plain checks that the page has no faults, in light and dark mode, and fits a phone.
func (tab *Tab) plain(t *testing.T) {
	t.Helper()
	path := tab.Path()
	require.Empty(t, tab.Faults(), path)
	tab.Dark(true)
	require.Empty(t, tab.Faults(), "%s in the dark", path)
	tab.Dark(false)
	tab.On(Phone)
	require.Empty(t, Eval[[]string](tab, sticksOut), "%s is wider than a phone", path)
	require.Empty(t, tab.Faults(), "%s on a phone", path)
	tab.On(Desktop)
}
