package browsertest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// serve serves documents by path, with the console's content security policy.
func serve(t testing.TB, documents map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; "+
			"script-src 'self'; connect-src 'self'")
		if strings.HasSuffix(r.URL.Path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
		}
		if strings.HasSuffix(r.URL.Path, ".svg") {
			w.Header().Set("Content-Type", "image/svg+xml")
		}
		fmt.Fprint(w, document)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// testWatch checks that every forbidden action of a page is recorded.
func testWatch(t *testing.T, b *Browser) {
	page := func(body string) string {
		return `<!doctype html><html lang="en"><link rel="icon" href="/icon.svg"><title>x</title>` + body
	}
	url := serve(t, map[string]string{
		"/icon.svg":   `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"/good":       page(`<h1>hello</h1>`),
		"/inline":     page(`<script>document.title = "ran"</script>`),
		"/handler":    page(`<img src="/icon.svg" onload="document.title = 'ran'">`),
		"/elsewhere":  page(`<a id="a" href="http://example.com/">leave</a>`),
		"/image":      page(`<img src="http://example.com/pixel.gif">`),
		"/missing":    page(`<script src="/none.js"></script>`),
		"/throws":     page(`<script src="/throws.js"></script>`),
		"/throws.js":  `setTimeout(() => { throw new Error("broken") }); document.body.append("run")`,
		"/logs":       page(`<script src="/logs.js"></script>`),
		"/logs.js":    `console.error("so", "it is")`,
		"/rejects":    page(`<script src="/rejects.js"></script>`),
		"/rejects.js": `Promise.reject(new Error("nobody listens"))`,
	})
	for path, want := range map[string]string{
		"/good":    "",
		"/inline":  "Executing inline script violates",
		"/handler": "Executing inline event handler violates",
		"/image": "a request to elsewhere: http://example.com/pixel.gif|violates the following Content " +
			"Security Policy",
		"/missing": "404",
		"/throws":  "an exception: .*broken",
		"/logs":    "console.error: .*so.*it is",
		"/rejects": "an exception: .*nobody listens",
		"/nowhere": "",
	} {
		t.Run(path, func(t *testing.T) {
			tab := b.Tab(t, url)
			status := tab.Open(path)
			if want == "" {
				require.Empty(t, tab.Misbehaved())
				require.Equal(t, path == "/good", status == http.StatusOK)
				return
			}
			var found []string
			for len(found) == 0 {
				tab.Wait("document.readyState === 'complete'")
				found = tab.Misbehaved()
			}
			require.Regexp(t, want, strings.Join(found, "\n"))
			require.NotEqual(t, "ran", Eval[string](tab, "document.title"))
			tab.do(chromedp.Navigate("about:blank"))
			tab.Misbehaved()
		})
	}
}

// testTab checks that a tab is a separate session and has a keyboard.
func testTab(t *testing.T, b *Browser) {
	url := serve(t, map[string]string{
		"/":      `<!doctype html><link rel="icon" href="/x.svg"><form action="/sent"><input name="q"><button>go</button></form><noscript>off</noscript>`,
		"/sent":  `<!doctype html><title>sent</title>`,
		"/x.svg": `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50"><rect width="100" height="50" fill="#eee"/><text y="20" fill="#ddd">pale</text><text y="40" fill="#111">ink</text></svg>`,
	})
	tab := b.Tab(t, url)
	require.Equal(t, http.StatusOK, tab.Open("/"))
	Eval[string](tab, "document.cookie = 'a=b'")
	tab.Press(kb.Tab)
	tab.Press("hi")
	tab.Leave(func() { tab.Press(kb.Enter) })
	require.Equal(t, "/sent?q=hi", tab.Path())
	require.Equal(t, http.StatusOK, tab.Status())

	other := b.Tab(t, url)
	other.WithoutScripts()
	other.Open("/")
	require.Empty(t, Eval[string](other, "document.cookie"))
	require.Contains(t, other.Text("body"), "off")
	other.Fill("input", "typed")
	require.Equal(t, "typed", Eval[string](other, "document.querySelector('input').value"))

	other.On(Phone)
	require.EqualValues(t, Phone.Width, Eval[int](other, "innerWidth"))
	other.Dark(true)
	require.True(t, Eval[bool](other, "matchMedia('(prefers-color-scheme: dark)').matches"))

	other.Open("/x.svg")
	require.Len(t, other.Faults(), 1)
	require.Contains(t, other.Faults()[0], "“pale”: its text has a contrast of 1.1")
	require.Greater(t, len(other.Picture()), 100)
}

// TestABrowserEnds checks that a browser leaves no process and no profile behind.
func TestABrowserEnds(t *testing.T) {
	var profile string
	t.Run("run", func(t *testing.T) {
		b := Start(t)
		b.Tab(t, "http://127.0.0.1:1").do()
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", chromedp.FromContext(b.ctx).Browser.Process().Pid))
		if err != nil {
			return // a machine without /proc
		}
		for arg := range strings.SplitSeq(string(args), "\x00") {
			if dir, ok := strings.CutPrefix(arg, "--user-data-dir="); ok {
				profile = dir
			}
		}
		require.NotEmpty(t, profile)
	})
	if profile == "" {
		return
	}
	require.NoDirExists(t, profile)
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range lines {
		args, _ := os.ReadFile(file) // processes end meanwhile
		require.NotContains(t, string(args), profile)
	}
}
