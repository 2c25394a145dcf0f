package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// Tab is a browser tab with cookies of its own. If an action in the browser fails, the method of the Tab ends the test
// with a failure. A Tab is not safe for concurrent use.
type Tab struct {
	t     testing.TB
	ctx   context.Context
	base  *url.URL
	watch *watch
}

// Tab opens a browser tab for the service at the address in the argument "base". At the end of the test, the method Tab
// also closes the browser tab. The test fails if a page of the browser tab did something forbidden (see Misbehaved).
func (b *Browser) Tab(t testing.TB, base string) *Tab {
	t.Helper()
	address, err := url.Parse(base)
	require.NoError(t, err)
	tab := &Tab{t: t, base: address, watch: newWatch(address.Host)}
	var end context.CancelFunc
	tab.ctx, end = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(tab.watch.see))
	t.Cleanup(end)
	tab.On(Desktop)
	tab.Dark(false)
	t.Cleanup(func() { require.Empty(t, tab.Misbehaved(), "what pages did that they must not") })
	return tab
}

// The method Misbehaved returns the forbidden actions of pages since the last call of Misbehaved. Forbidden actions are
// errors and warnings in the browser's console, violations of the content security policy, requests to other websites,
// and dialogs.
func (tab *Tab) Misbehaved() []string { return tab.watch.found() }

// Requests returns the addresses of all requests that pages of the browser tab have made so far.
func (tab *Tab) Requests() []string {
	tab.watch.mu.Lock()
	defer tab.watch.mu.Unlock()
	return append([]string(nil), tab.watch.requests...)
}

// A Screen is the size of a browser window in CSS pixels.
type Screen struct{ Width, Height int64 }

// These variables are the screen sizes with which tests look at pages.
var (
	Desktop = Screen{1100, 800}
	Phone   = Screen{390, 844}
)

// The method On changes the size of the browser window to the size of the given screen.
func (tab *Tab) On(s Screen) {
	tab.t.Helper()
	tab.do(chromedp.EmulateViewport(s.Width, s.Height))
}

// The method In makes the pages of the browser tab use the given time zone.
func (tab *Tab) In(zone string) {
	tab.t.Helper()
	_, err := chromedp.Call(tab.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{
		TimezoneID: zone})
	require.NoError(tab.t, err)
}

// The method Dark switches the dark mode of the browser tab on or off, and disables animations.
func (tab *Tab) Dark(dark bool) {
	tab.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(tab.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme},
			{Name: "prefers-reduced-motion", Value: "reduce"}},
	})
	require.NoError(tab.t, err)
}

// WithoutScripts makes the browser tab run no scripts of pages.
func (tab *Tab) WithoutScripts() {
	tab.t.Helper()
	_, err := chromedp.Call(tab.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{
		Value: true})
	require.NoError(tab.t, err)
}

// The method do executes browser actions in the tab, with a time limit.
func (tab *Tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	require.NoError(tab.t, chromedp.Do(tab.ctx), "open a tab") // the first use of a context must have no deadline
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	require.NoError(tab.t, chromedp.Do(ctx, steps...), "at "+tab.address())
}

// The method Open loads a page of the service in the tab, and waits until the page is loaded. The path may contain a
// query. The method Open returns the HTTP status of the page after all redirects.
func (tab *Tab) Open(path string) (status int) {
	tab.t.Helper()
	tab.do(chromedp.Navigate(tab.base.String() + path))
	return tab.Status()
}

// Status returns the HTTP status of the current document.
func (tab *Tab) Status() int {
	address, _, _ := strings.Cut(tab.address(), "#")
	return tab.watch.status(address)
}

// Path returns the path of the page, including the query.
func (tab *Tab) Path() string { return strings.TrimPrefix(tab.address(), tab.base.String()) }

func (tab *Tab) address() string {
	address, err := chromedp.Run(tab.ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	return address
}

// Eval evaluates a JavaScript expression in the page, and returns its value.
func Eval[T any](tab *Tab, expression string, args ...any) T {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...), chromedp.EvalAwaitPromise))
	require.NoError(tab.t, err, expression)
	return value
}

// Wait evaluates a JavaScript expression in the page repeatedly, until its value is true. Before the evaluation, Wait
// replaces each %q in the expression by one of the arguments.
func (tab *Tab) Wait(expression string, args ...any) {
	tab.t.Helper()
	expression = fmt.Sprintf(expression, args...)
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); tab.do(
		chromedp.Sleep(20 * time.Millisecond)) {
		var holds bool
		// While the browser loads another page, evaluating the expression fails.
		if holds, err = chromedp.Run(tab.ctx, chromedp.Evaluate[bool]("Promise.resolve("+expression+").then(Boolean)",
			chromedp.EvalAwaitPromise)); err == nil && holds {
			return
		}
	}
	require.Fail(tab.t, "never true: "+expression, "%s (%v)\n%s", tab.Path(), err, tab.Text("body"))
}

// Text returns the visible text of the first element of the page that matches the CSS selector.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return Eval[string](tab, "document.querySelector(%q)?.innerText ?? ''", selector)
}

// Texts returns the visible text of each element of the page that matches the CSS selector.
func (tab *Tab) Texts(selector string) []string {
	tab.t.Helper()
	return Eval[[]string](tab, "[...document.querySelectorAll(%q)].map(e => e.innerText.trim())", selector)
}

// The method Has reports whether an element of the page matches the CSS selector.
func (tab *Tab) Has(selector string) bool {
	tab.t.Helper()
	return Eval[bool](tab, "document.querySelector(%q) !== null", selector)
}

// The method Fill replaces the content of the form field that matches the CSS selector by a text.
func (tab *Tab) Fill(selector, text string) {
	tab.t.Helper()
	Eval[any](tab, "document.querySelector(%q).focus(), document.querySelector(%q).select()", selector, selector)
	tab.Press(kb.Delete + text)
}

// Click clicks the first element of the page that matches the CSS selector.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.do(chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// The method Leave calls the function "act", which must open another page, and waits until the other page is loaded.
func (tab *Tab) Leave(act func()) {
	tab.t.Helper()
	Eval[bool](tab, "document.documentElement.left = true")
	act()
	tab.Wait("!document.documentElement.left && document.readyState === 'complete'")
}

// The method Press types keys, such as kb.Tab and kb.Enter, into the focused element of the page.
func (tab *Tab) Press(keys string, options ...chromedp.KeyOption) {
	tab.t.Helper()
	tab.do(chromedp.KeyEvent(keys, options...))
}

// Upload chooses a file in the file field that matches the CSS selector.
func (tab *Tab) Upload(selector, file string) {
	tab.t.Helper()
	tab.do(chromedp.SetUploadFiles(chromedp.CSS(selector), []string{file}))
}

// Picture returns a screenshot of the browser window as PNG.
func (tab *Tab) Picture() []byte {
	tab.t.Helper()
	shot, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	require.NoError(tab.t, err)
	return shot
}

// Cookies returns the cookies that the browser tab sends to the service, including cookies that scripts cannot read.
func (tab *Tab) Cookies() []*network.Cookie {
	tab.t.Helper()
	cookies, err := chromedp.Call(tab.ctx, network.GetCookies,
		network.GetCookiesParams{URLs: []string{tab.base.String() + "/console/", tab.base.String() +
			"/console/sign-in"}})
	require.NoError(tab.t, err)
	return cookies.Cookies
}

// Download clicks a link to a file on a page, and returns the content of the downloaded file.
func (tab *Tab) Download(path, selector string) string {
	tab.t.Helper()
	dir := tab.t.TempDir()
	_, err := chromedp.CallBrowser(tab.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior:         browser.SetDownloadBehaviorBehaviorAllow,
		BrowserContextID: chromedp.FromContext(tab.ctx).BrowserContextID, DownloadPath: dir,
	})
	require.NoError(tab.t, err)
	tab.Open(path)
	tab.Click(selector)
	var content []byte
	testkit.Eventually(tab.t, func() bool {
		file, _ := filepath.Glob(filepath.Join(dir, "*.csv")) // an incomplete download is empty or has another name
		if len(file) == 1 {
			content, err = os.ReadFile(file[0])
		}
		return err != nil || len(content) > 0
	})
	require.NoError(tab.t, err)
	return string(content)
}
