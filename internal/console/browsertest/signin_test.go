package browsertest

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testSignIn(t *testing.T, s *suite) {
	tab := s.Tab(t, s.keyed.URL)
	require.Equal(t, http.StatusOK, tab.Open("/console/limits"))
	require.Equal(t, "Sign in", tab.Text("h1"))
	require.Empty(t, tab.Texts("nav a"), "who is not signed in sees nothing")
	require.Equal(t, "key", Eval[string](tab, "document.activeElement.id"))
	require.Equal(t, "password", Eval[string](tab, "document.activeElement.type"))
	require.Empty(t, tab.Faults())

	enter(tab, "reader.wrong")
	require.Equal(t, http.StatusUnauthorized, tab.Status())
	require.Contains(t, tab.Text("[role=alert]"), "This key is not valid")
	require.Empty(t, Eval[string](tab, "document.querySelector('#key').value"), "a key is never sent back")
	require.Empty(t, tab.Faults())

	enter(tab, Engine)
	require.Equal(t, http.StatusForbidden, tab.Status())
	require.Contains(t, tab.Text("[role=alert]"), "lacks the scope read")

	enter(tab, "  "+Reader+" ")
	require.Equal(t, "/console/limits", tab.Path(), "where one wanted to go")
	require.Equal(t, "Limits", tab.Text("h1"))
	require.Contains(t, tab.Text("header"), "reader")
	require.Empty(t, Eval[string](tab, "document.cookie"), "no script reads the session")
	for _, cookie := range tab.Cookies() {
		require.True(t, cookie.HTTPOnly, cookie.Name)
		require.EqualValues(t, "Strict", cookie.SameSite, cookie.Name)
		require.Regexp(t, "^/console", cookie.Path, cookie.Name)
		require.NotContains(t, cookie.Value, "s3cr3t", cookie.Name)
	}
	for _, address := range tab.Requests() {
		require.NotContains(t, address, "s3cr3t")
	}

	tab.Leave(func() { tab.Click("form.who button") })
	require.Equal(t, "Sign in", tab.Text("h1"))
	tab.Open("/console/limits")
	require.Equal(t, "Sign in", tab.Text("h1"))
	require.NotContains(t, tab.Text("body"), "reader")
}

// testSessionsEnd checks that a session ends by itself, with its key, and when its key loses the scope read.
func testSessionsEnd(t *testing.T, s *suite) {
	service := Serve(t, Setup{Keys: true})
	tab := s.signIn(t, service, Reader)
	service.Clock.Advance(7*time.Hour + 59*time.Minute)
	tab.Open("/console/")
	require.Equal(t, "Overview", tab.Text("h1"))
	service.Clock.Advance(2 * time.Minute)
	tab.Open("/console/pacers")
	require.Equal(t, "Sign in", tab.Text("h1"))
	require.Contains(t, tab.Text("main"), "Your session has ended")
	enter(tab, Reader)
	require.Equal(t, "/console/pacers", tab.Path())

	admin := s.signIn(t, service, Admin)
	tab.Open("/console/try") // which makes no request by itself
	service.Configure(Reader)
	tab.Wait("fetch('/console/limits').then(r => r.url.includes('sign-in'))")
	tab.Open("/console/")
	require.Equal(t, "Sign in", tab.Text("h1"), "the key is not configured any more")
	enter(tab, Reader)
	require.Contains(t, tab.Text("[role=alert]"), "This key is not valid")
	admin.Open("/console/")
	require.Equal(t, "Overview", admin.Text("h1"), "the sessions of other keys go on")
}

func testOpen(t *testing.T, s *suite) {
	tab := s.Tab(t, s.open.URL)
	require.Equal(t, http.StatusOK, tab.Open("/console"))
	require.Equal(t, "/console/", tab.Path())
	require.Equal(t, "Overview", tab.Text("h1"))
	require.False(t, tab.Has("form.who"), "nobody signs out who has not signed in")
	require.Empty(t, tab.Cookies())
}

// testForeignForm checks that a form without the session's token has no effect.
func testForeignForm(t *testing.T, s *suite) {
	tab := s.signIn(t, s.keyed, Reader)
	Eval[any](tab, "document.querySelector('form.who [name=token]').value = 'guessed'")
	tab.Leave(func() { tab.Click("form.who button") })
	require.Equal(t, http.StatusForbidden, tab.Status())
	require.Contains(t, tab.Text("main"), "nothing was done")
	tab.Open("/console/")
	require.Equal(t, "Overview", tab.Text("h1"), "still signed in")
}

func testTurnedOff(t *testing.T, s *suite) {
	service := Serve(t, Setup{With: "console: false"})
	tab := s.Tab(t, service.URL)
	require.Equal(t, http.StatusNotFound, tab.Open("/console/"))
	require.NotContains(t, tab.Text("body"), "Overview")
}
