package browsertest

import (
	"fmt"
	"net/url"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// A watch collects the forbidden actions of the pages in a browser tab, such as requests to other websites. Use
// newWatch to create a watch.
type watch struct {
	host string // only host to which pages may send requests

	mu        sync.Mutex
	trouble   []string
	requests  []string
	documents map[network.RequestID]bool
	statuses  map[string]int // HTTP statuses of documents, by address
}

func newWatch(host string) *watch {
	return &watch{host: host, documents: map[network.RequestID]bool{}, statuses: map[string]int{}}
}

// The method see notes the information in an event of the browser: a request, the HTTP status of a document, or a
// forbidden action.
func (w *watch) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.request(e)
	case *network.EventResponseReceived:
		if e.Type == network.ResourceTypeDocument {
			w.statuses[e.Response.URL] = int(e.Response.Status)
		}
	case *network.EventLoadingFailed:
		if !e.Canceled && !w.documents[e.RequestID] {
			w.note("a request failed: %s %s", e.ErrorText, e.BlockedReason)
		}
	case *log.EventEntryAdded:
		w.entry(e.Entry)
	case *runtime.EventExceptionThrown:
		w.note("an exception: %s", e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			w.note("console.%s: %s", e.Type, arguments(e.Args))
		}
	case *page.EventJavascriptDialogOpening:
		w.note("a dialog: %s", e.Message)
	}
}

func (w *watch) note(format string, args ...any) {
	w.trouble = append(w.trouble, fmt.Sprintf(format, args...))
}

func (w *watch) request(e *network.EventRequestWillBeSent) {
	asked, err := url.Parse(e.Request.URL)
	w.documents[e.RequestID] = e.Type == network.ResourceTypeDocument
	w.requests = append(w.requests, e.Request.URL)
	if err != nil || asked.Host != w.host && e.Request.URL != "about:blank" {
		w.note("a request to elsewhere: %s", e.Request.URL)
	}
}

// The method entry notes a log entry that Chromium itself has written to the browser's console, unless the entry is
// harmless. Chromium writes a log entry for each document with an error status, which is normal for an error page. If a
// chart is opened as a document of its own, an entry about the missing icon of this document is harmless, too.
func (w *watch) entry(e *log.Entry) {
	if e.Source == log.EntrySourceNetwork && (w.documents[e.NetworkRequestID] ||
		strings.HasSuffix(e.URL, "/favicon.ico")) {
		return
	}
	if e.Level == log.EntryLevelError || e.Level == log.EntryLevelWarning || e.Source == log.EntrySourceSecurity {
		w.note("%s %s: %s %s", e.Source, e.Level, e.Text, e.URL)
	}
}

func arguments(args []*runtime.RemoteObject) (text string) {
	for _, a := range args {
		text += string(a.Value) + a.Description + " "
	}
	return text
}

// The method "found" returns the forbidden actions that the watch has noted, and removes them from the watch.
func (w *watch) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := w.trouble
	w.trouble = nil
	return found
}

func (w *watch) status(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.statuses[address]
}
