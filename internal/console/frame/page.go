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
	// Path is where it is below /console/, as a pattern of http.ServeMux; "": the console's
	// own address. Path values are read from the visit's request.
	Path string
	// Nav is its name in the navigation, where pages stand in their order; "": not there.
	// Under is the Nav of the page that stands for one that is not.
	Nav, Under string
	// Live: it is shown anew every few seconds, while it is seen.
	Live bool
	// Template is the name of a file of Files; it defines "main", what stands below the
	// title and the question. Its dot is a Content.
	Template string
	Files    fs.FS
	// Show finds what the page shows. An error of the API becomes a page that says what to do.
	Show func(v *Visit) (*View, error)
	// Act answers a form that was sent to the page's address, after the session's token was
	// found in it; nil: there is none. Go says where the visitor goes then; "": the view is shown.
	Act func(v *Visit) (view *View, to string, err error)
	// MaxForm is the most bytes of a form; 0: 16 KiB. Forms may be multipart.
	MaxForm int64
}

// Visit is one request for a page.
type Visit struct {
	*http.Request
	API     *client.Client // asks as the visitor; calls need Context
	Now     time.Time
	Session Session
	control *gate.Control
	ctx     context.Context
}

// Context returns the context for API calls that serve the visit.
func (v *Visit) Context() context.Context { return v.ctx }

// May reports whether the visitor has the scope. Pages use May to show or hide elements; the API checks the scope
// again.
func (v *Visit) May(scope gate.Scope) bool { return v.control.May(v.Session.Key, scope) }

// View is the content of a page.
type View struct {
	Title    string // the h1, and the document's title
	Question string // what the page answers, in a sentence
	Status   int    // 0: 200
	Data     any    // the template's, as .Data
	Tables   []*Table
	Pictures []*Picture
	Calls    []string // of the API, which give the same: "GET /v1/limits"
}

// Picture is an SVG picture at the address of its page.
type Picture struct {
	Name    string
	Caption string // below it: what it counts; "": Alt says it
	Alt     string // what it shows, in words, for who cannot see it
	Draw    func(dark bool) ([]byte, error)

	page *content
}

// content is the data of every template.
type content struct {
	*View
	Visit *Visit
	page  *Page
	frame *Frame
	nav   []link
	at    string // the address of the page, with what it was asked for
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
