package frame

import (
	"context"
	"html/template"
	"io/fs"
	"net/http"
	"time"

	"capper/client"
	"capper/internal/server/gate"
)

// Page is one page of the console. A page answers one question.
type Page struct {
	// Path is the page's path below /console/, in the syntax of http.ServeMux; "" stands for the console's own
	// address. The visit's request holds the path values.
	Path string
	// Nav is the page's name in the navigation; "": the page is not listed. Under is the Nav of the listed page that
	// is marked while an unlisted page is shown.
	Nav, Under string
	// Live: the page updates itself every few seconds while it is visible.
	Live bool
	// Template is the name of a file in Files, or the names of several with blanks between them. They define "main",
	// the content below the title and the question. Its dot is a content.
	Template string
	Files    fs.FS
	// Show returns the content of the page. The frame shows an error of the API as a page with a remedy.
	Show func(v *Visit) (*View, error)
	// Act handles a form sent to the page's address, after the frame has checked the session's token; nil: the page
	// accepts no form. The result to is the next address; "": the returned view is shown.
	Act func(v *Visit) (view *View, to string, err error)
	// MaxForm is the maximum size of a form in bytes; 0: 16 KiB. Forms may be multipart.
	MaxForm int64
}

// Visit is one request for a page.
type Visit struct {
	*http.Request
	API     *client.Client // calls the API for the visitor; calls need Context
	Now     time.Time
	Session Session
	control *gate.Control
	// sessions has the secrets of keys.
	sessions *sessions
	ctx      context.Context
}

// Context returns the context for API calls that serve the visit.
func (v *Visit) Context() context.Context { return v.ctx }

// May reports whether the visitor has the scope. Pages use May to show or hide elements; the API checks the scope
// again.
func (v *Visit) May(scope gate.Scope) bool { return v.control.May(v.Session.Key, scope) }

// MayOpen reports whether the visitor may see the campaigns of a namespace. Its API refuses others.
func (v *Visit) MayOpen(namespace string) bool {
	own := v.control.NamespaceOf(v.Session.Key)
	return own == "" || own == namespace
}

// Seal returns data as a text for an address of the console. Every instance with the visitor's key opens the text, for
// each of its visitors. Nobody else can read or make such a text.
func (v *Visit) Seal(data []byte) string { return v.sessions.sealData(v.Session.Key, data) }

// Open returns the data of a text from Seal. The result is false for other texts, and when the key that sealed the data
// does not exist any more.
func (v *Visit) Open(text string) ([]byte, bool) { return v.sessions.openData(text) }

// View is the content of a page.
type View struct {
	Title    string // the h1, and the document's title
	Question string // the question that the page answers, in a sentence
	Status   int    // 0: 200
	To       string // another address that has the content, to which the visitor is redirected; "": none
	Data     any    // available to the template as .Data
	Tables   []*Table
	Pictures []*Picture
	Calls    []string // API calls that return the same data: "GET /v1/limits"
}

// Picture is an SVG picture at the address of its page.
type Picture struct {
	Name    string
	Caption string // text below the picture: the counted things; "": Alt is shown
	Alt     string // description in words, for people who cannot see the picture
	Draw    func(dark bool) ([]byte, error)
	// Slim draws the picture for phones, 360 units wide; nil: phones scroll the picture of Draw.
	Slim func(dark bool) ([]byte, error)

	page *content
}

// content is the data of every template.
type content struct {
	*View
	Visit *Visit
	page  *Page
	frame *Frame
	nav   []link
	at    string // address of the page with its parameters
}

// link is a link of the navigation.
type link struct {
	Name, To string
	Here     bool
}

// Table returns the table with the given name, for {{template "table" (.Table "limits")}}.
func (c *content) Table(name string) *Table {
	for _, t := range c.Tables {
		if t.Name == name {
			t.page = c
			return t
		}
	}
	return nil
}

// Picture returns the picture with the given name, for {{template "picture" (.Picture "hour")}}.
func (c *content) Picture(name string) *Picture {
	for _, p := range c.Pictures {
		if p.Name == name {
			p.page = c
			return p
		}
	}
	return nil
}

// Token returns the token that every form must contain: {{template "token" .}}.
func (c *content) Token() string { return c.Visit.Session.Token }

// Nav returns the navigation links for the layout.
func (c *content) Nav() []link { return c.nav }

// Live reports whether the page updates itself.
func (c *content) Live() bool { return c.page.Live }

// SignedIn returns the id of the visitor's key, or "" when the service has no keys.
func (c *content) SignedIn() string { return c.Visit.Session.Key }

// Now returns the time of the visit, for {{when .Now .At}}.
func (c *content) Now() time.Time { return c.Visit.Now }

// Address returns the page's own address, which a visitor can reload or send to a colleague.
func (c *content) Address() string { return c.at }

// When returns a time relative to the visit, with the exact time as a tooltip.
func (c *content) When(at time.Time) template.HTML { return when(c.Visit.Now, at) }

// SignIn returns the data of the sign-in page, or nil for other pages.
func (c *content) SignIn() *signIn {
	if s, ok := c.Data.(signIn); ok {
		return &s
	}
	return nil
}

// Notice returns the data of a notice page, or nil for other pages.
func (c *content) Notice() *notice {
	if n, ok := c.Data.(notice); ok {
		return &n
	}
	return nil
}
