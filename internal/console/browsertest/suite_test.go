package browsertest

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// suite is what its tests share. Nothing that one of them does to the services is
// seen by another.
type suite struct {
	*Browser
	open  *Service // no keys: everybody on this machine may do everything
	keyed *Service // with keys and an audit
}

// TestInABrowser is one test, as all of it is done in one browser.
func TestInABrowser(t *testing.T) {
	s := &suite{Browser: Start(t), open: Serve(t, Setup{}), keyed: Serve(t, Setup{Keys: true, Audit: audited})}
	for _, service := range []*Service{s.open, s.keyed} {
		service.Samples()
	}
	for name, test := range map[string]func(t *testing.T, s *suite){
		"what pages do is watched":  func(t *testing.T, s *suite) { testWatch(t, s.Browser) },
		"a tab":                     func(t *testing.T, s *suite) { testTab(t, s.Browser) },
		"faults are found":          func(t *testing.T, s *suite) { testFaults(t, s.Browser) },
		"signing in":                testSignIn,
		"sessions end":              testSessionsEnd,
		"without keys it is open":   testOpen,
		"every page":                testEveryPage,
		"the keyboard":              testKeyboard,
		"without scripts":           testWithoutScripts,
		"pages are shown anew":      testLive,
		"tables are exported":       testCSV,
		"what is not there":         testNotThere,
		"campaigns":                 testCampaigns,
		"a user":                    testUser,
		"erasing":                   testErase,
		"trying an audience":        testTryIt,
		"segments":                  testSegments,
		"limits and pacers":         testLimitsAndPacers,
		"hostile names":             testHostile,
		"the store is away":         testStoreAway,
		"forms of elsewhere":        testForeignForm,
		"the console is turned off": testTurnedOff,
		"pictures":                  testPictures,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// audited: the configuration may ask for an audit.
const audited = true

// signIn is a tab whose visitor has shown the key.
func (s *suite) signIn(t *testing.T, service *Service, key string) *Tab {
	t.Helper()
	tab := s.Tab(t, service.URL)
	tab.Open("/console/")
	enter(tab, key)
	require.Equal(t, "/console/", tab.Path(), tab.Text("main"))
	return tab
}

// enter shows a key to the form.
func enter(tab *Tab, key string) {
	tab.t.Helper()
	tab.Fill("#key", key)
	tab.Leave(func() { tab.Press(kb.Enter) })
}

// pages are the addresses of the navigation, and one of each kind that their
// tables and sentences lead to.
func (tab *Tab) pages() (paths []string) {
	tab.t.Helper()
	tab.Open("/console/")
	paths = tab.links("nav a")
	kinds := map[string]bool{}
	for _, path := range slices.Clone(paths) {
		tab.Open(path)
		for _, to := range tab.links("main a[href]:not([download])") {
			at, err := url.Parse(to)
			require.NoError(tab.t, err)
			kind := at.Path[:strings.LastIndex(at.Path, "/")+1] + strings.Join(slices.Sorted(keysOf(at.Query())), "&")
			if strings.HasPrefix(to, "/console/") && !slices.Contains(paths, to) && !kinds[kind] {
				kinds[kind] = true
				paths = append(paths, to)
			}
		}
	}
	return paths
}

func keysOf(values url.Values) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range values {
			if !yield(key) {
				return
			}
		}
	}
}

// links are where the elements that match lead, within the service.
func (tab *Tab) links(selector string) []string {
	tab.t.Helper()
	return Eval[[]string](tab, "[...document.querySelectorAll(%q)].filter(a => a.origin === location.origin && "+
		"!a.hash).map(a => a.pathname + a.search)", selector)
}
