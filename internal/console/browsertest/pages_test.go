package browsertest

import (
	"capper/internal/testcluster"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testEveryPage checks every page in light and dark mode: it is accessible, fits a phone's width, and is the same for
// a colleague with the address.
func testEveryPage(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Admin)
	require.Subset(t, s.pages, []string{"/console/", "/console/limits", "/console/pacers"})
	colleague := s.signIn(t, s.keyed, Admin)
	var pictures []string
	for _, path := range s.pages {
		tab.On(Desktop)
		require.Equal(t, http.StatusOK, tab.Open(path), path)
		require.Equal(t, tab.Text("h1")+" · capper", Eval[string](tab, "document.title"), path)
		require.NotEmpty(t, tab.Text(".question"), path)
		require.NotContains(t, tab.Text("body"), "<no value>", path)
		require.Empty(t, tab.Faults(), path)
		pictures = append(pictures, Eval[[]string](tab, "[...document.querySelectorAll('picture source, picture img, "+
			"main img')].map(e => e.srcset || e.getAttribute('src'))")...)
		tab.Dark(true)
		require.Empty(t, tab.Faults(), "%s in the dark", path)
		for _, width := range []int64{320, Phone.Width} {
			tab.On(Screen{width, Phone.Height})
			require.Empty(t, Eval[[]string](tab, sticksOut), "%s is wider than %d pixels", path, width)
		}
		require.Empty(t, tab.Faults(), "%s in the dark, on a phone", path)
		tab.Dark(false)
		colleague.Dark(true)
		colleague.Open(path)
		require.Equal(t, steady(tab.Text("main")), steady(colleague.Text("main")), path)
	}
	tab.pictures(t, pictures)
	t.Logf("%d pages: %s", len(s.pages), strings.Join(s.pages, " "))
}

// steady returns a text without the parts that change every second.
func steady(text string) string { return strings.Join(strings.Fields(text), " ") }

// sticksOut finds the elements that make a page wider than its window.
const sticksOut = `document.documentElement.scrollWidth <= innerWidth ? [] :
	[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll *")).map(e => e.outerHTML.slice(0, 120))`

// pictures checks every picture separately: its texts must be legible on the page that shows it.
func (tab *Tab) pictures(t *testing.T, addresses []string) {
	t.Helper()
	require.NotEmpty(t, addresses)
	for _, picture := range addresses {
		tab.Dark(strings.Contains(picture, "theme=dark"))
		require.Equal(t, http.StatusOK, tab.Open(picture), picture)
		require.Equal(t, "svg", Eval[string](tab, "document.documentElement.localName"), picture)
		require.Empty(t, tab.Faults(), picture)
	}
}

// testKeyboard checks that a keyboard reaches every element, shows the focus, and can skip the navigation.
func testKeyboard(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Admin)
	for _, path := range s.pages {
		tab.Open(path)
		want := Eval[int](tab, reachable)
		seen := 0
		for range want {
			tab.Press("\t")
			at := Eval[string](tab, focused)
			require.NotRegexp(t, "^fault: ", at, path)
			if at != "" {
				seen++
			}
			if seen == 1 {
				require.Contains(t, at, "Skip to the content", path)
			}
		}
		require.Equal(t, want, seen, "%s: what the keyboard reaches", path)
	}
	tab.Open("/console/limits")
	tab.Press("\t")
	tab.Press("\r")
	require.Equal(t, "main", Eval[string](tab, "document.activeElement.id"))
	tab.Press("\t")
	require.True(t, Eval[bool](tab, "document.querySelector('main').contains(document.activeElement)"),
		"behind the navigation")
}

// reachable counts the elements that the keyboard must reach; a group of radio buttons counts as one.
const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => !e.disabled && e.checkVisibility({visibilityProperty: true}) &&
	(e.type !== "radio" || e === (document.querySelector('input[type=radio][name="' + e.name + '"]:checked') ?? document.querySelector('input[type=radio][name="' + e.name + '"]')))).length`

// focused returns the focused element, each element once, or "" when no new element has the focus. An invisible focus
// is a fault.
const focused = `(() => {
	const e = document.activeElement, style = getComputedStyle(e);
	if (e === document.body || e.wasFocused) return "";
	e.wasFocused = true;
	const name = e.localName + " " + (e.textContent || e.id).trim().slice(0, 60), box = e.getBoundingClientRect();
	if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2)
		return "fault: it does not show that this has the focus: " + name;
	if (box.bottom <= 0 || box.top >= innerHeight || box.right <= 0 || box.left >= innerWidth)
		return "fault: out of sight: " + name;
	return name;
})()`

// testWithoutScripts checks that a page shows the same content with scripts off.
func testWithoutScripts(t *testing.T, s *suite) {
	with := s.signIn(t, s.keyed, Reader)
	without := s.Tab(t, s.keyed.URL)
	without.WithoutScripts()
	without.Open("/console/")
	without.Fill("#key", Reader)
	without.Press("\r")
	without.Wait("document.querySelector('nav')")
	for _, path := range s.pages {
		with.Open(path)
		require.Equal(t, http.StatusOK, without.Open(path), path)
		require.Equal(t, with.Text("main"), without.Text("main"), path)
	}
}

// testNotThere checks that the page for an unknown address has a link to another page.
func testNotThere(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Reader)
	for _, path := range []string{"/console/none", "/console/limits/x", "/console/limits?format=csv&table=none",
		"/console/?format=svg&picture=none"} {
		require.Equal(t, http.StatusNotFound, tab.Open(path), path)
		require.NotEmpty(t, tab.Text("h1"), path)
		require.NotEmpty(t, tab.links("main a"), "%s: where to go on", path)
		require.Empty(t, tab.Faults(), path)
	}
}

// testStoreAway checks that the console reports an outage of the store and shows all other data.
func testStoreAway(t *testing.T, s *suite) {
	redis := testcluster.Single(t, testcluster.Options{})
	service := Serve(t, Setup{Redis: redis.Addrs[0], Now: time.Now().Add(26 * time.Hour)}) // its clock is the real one
	service.send("welcome", "push", []uint32{7})
	tab := s.Tab(t, service.URL)
	tab.Open("/console/")
	tab.Wait("fetch('/console/').then(r => r.text()).then(t => t.includes('sends are decided and recorded'))")
	require.NoError(t, redis.Kill(redis.Addrs[0]))
	tab.Wait("fetch('/console/').then(r => r.text()).then(t => t.includes('no user is allowed'))")
	tab.Open("/console/")
	require.Contains(t, strings.Join(tab.Texts("#states .bad"), "\n"), "Trouble Store: Redis does not answer")
	require.Empty(t, tab.Faults())
	require.Equal(t, http.StatusOK, tab.Open("/console/limits"), "what needs no store is there")
}
