package browsertest

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// suite holds the data that the tests share. No test sees changes that another one makes to a service.
type suite struct {
	*Browser
	open  *Service // no keys: everybody on this machine may call everything
	keyed *Service // with keys and an audit
	pages []string // the addresses of the keyed service's pages
}

// TestInABrowser is a single test, because all parts share one browser.
func TestInABrowser(t *testing.T) {
	s := &suite{Browser: Start(t), open: Serve(t, Setup{}), keyed: Serve(t, Setup{Keys: true, Audit: audited})}
	for _, service := range []*Service{s.open, s.keyed} {
		service.Samples()
	}
	s.pages = s.signIn(t, s.keyed, Admin).pages()
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
		"for eyes":                  testEyes,
		"the size of pages":         testSizes,
		"erasing":                   testErase,
		"trying an audience":        testTryIt,
		"segments":                  testSegments,
		"limits and pacers":         testLimitsAndPacers,
		"pressure":                  testPressure,
		"what if":                   testWhatIf,
		"hostile names":             testHostile,
		"the store is away":         testStoreAway,
		"forms of elsewhere":        testForeignForm,
		"the console is turned off": testTurnedOff,
		"pictures":                  testPictures,
		"gallery":                   testGallery,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// audited is true when the configuration may enable an audit.
const audited = true

// signIn returns a tab whose visitor has signed in with the key.
func (s *suite) signIn(t *testing.T, service *Service, key string) *Tab {
	t.Helper()
	tab := s.Tab(t, service.URL)
	tab.Open("/console/")
	enter(tab, key)
	require.Equal(t, "/console/", tab.Path(), tab.Text("main"))
	return tab
}

// enter submits a key in the sign-in form.
func enter(tab *Tab, key string) {
	tab.t.Helper()
	tab.Fill("#key", key)
	tab.Leave(func() { tab.Press(kb.Enter) })
}

// pages returns the addresses in the navigation, and one address of each kind that tables and sentences link to.
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

// links returns the targets within the service of the links that match the selector.
func (tab *Tab) links(selector string) []string {
	tab.t.Helper()
	return Eval[[]string](tab, "[...document.querySelectorAll(%q)].filter(a => a.origin === location.origin && "+
		"!a.hash).map(a => a.pathname + a.search)", selector)
}
