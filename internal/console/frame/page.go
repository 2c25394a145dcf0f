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

// Page is a page of the console. Each page answers one question of visitors.
type Page struct {
	// Path is the path of the page below /console/, in the syntax of http.ServeMux. The path "" belongs to the page at
	// /console/. The request of a visit contains the values of wildcards in the path.
	Path string
	// Nav is the name of the page in the navigation. If Nav is "", the navigation does not contain the page. Under is
	// then the Nav of another page, which the navigation marks as the current page.
	Nav, Under string
	// If Live is true, the page updates itself every few seconds while the page is visible.
	Live bool
	// Template is the name of a file in Files, or several names separated by blanks. The files define "main", which is
	// the content below the title and the question. The data of the template is a content.
	Template string
	Files    fs.FS
	// Show returns the content of the page. If Show returns an error of the API, the visitor sees a page with a remedy.
	Show func(v *Visit) (*View, error)
	// Act processes a form that was sent to the address of the page, after the frame has checked the token of the
	// session. With a nil Act, the page accepts no forms. The result "to" is the address of the next page. If "to" is
	// "", the visitor sees the returned view.
	Act func(v *Visit) (view *View, to string, err error)
	// MaxForm is the maximum size in bytes of a form that the page accepts. The value 0 means 16 KiB. Forms may be
	// multipart forms.
	MaxForm int64
}

// A Visit is one request of a visitor for a console page.
type Visit struct {
	*http.Request
	API     *client.Client // client for API calls on behalf of the visitor; calls need Context
	Now     time.Time
	Session Session
	control *gate.Control
	// sessions derives the secrets for encrypted addresses from API keys.
	sessions *sessions
	ctx      context.Context
}

// Context returns the context for API calls on behalf of the visitor.
func (v *Visit) Context() context.Context { return v.ctx }

// The method May reports whether the API key of the visitor has the given scope. Pages use May to show or hide
// elements. When the visitor uses a page element that needs a scope, the API checks the scope itself.
func (v *Visit) May(scope gate.Scope) bool { return v.control.May(v.Session.Key, scope) }

// MayOpen reports whether the visitor may see the campaigns of a namespace. If the visitor may not see a namespace,
// the API would reject calls about its campaigns.
func (v *Visit) MayOpen(namespace string) bool {
	own := v.control.NamespaceOf(v.Session.Key)
	return own == "" || own == namespace
}

// The method Seal encrypts data for an address of the console. Every service instance that has the API key of the
// visitor can decrypt the text that Seal returns, for any visitor with this key. Nobody without the visitor's API key
// can read or create a text that Seal encrypts.
func (v *Visit) Seal(data []byte) string { return v.sessions.sealData(v.Session.Key, data) }

// Open decrypts a text that Seal has created. If Seal did not create the text, or if the API key of the text no longer
// exists, Open returns false.
func (v *Visit) Open(text string) ([]byte, bool) { return v.sessions.openData(text) }

// A View is the content of a console page for one request.
type View struct {
	Title    string // heading, and title of the document
	Question string // question that the page answers
	Status   int    // HTTP status; 0: 200
	To       string // address to which the visitor is redirected; "": no redirect
	Data     any    // data that the template uses as .Data
	Tables   []*Table
	Pictures []*Picture
	Calls    []string // API calls that return the same data, such as "GET /v1/limits"
}

// Picture is an SVG chart on a console page.
type Picture struct {
	Name    string
	Caption string // text below the chart; "": Alt
	Alt     string // description for people who cannot see the chart
	Draw    func(dark bool) ([]byte, error)
	// Slim draws the chart for phones, with a width of 360 units. If Slim is nil, visitors with phones scroll the chart
	// that Draw draws.
	Slim func(dark bool) ([]byte, error)

	page *content
}

// The type content is the data that the template of every page receives.
type content struct {
	*View
	Visit *Visit
	page  *Page
	frame *Frame
	nav   []link
	at    string // address of the page with its parameters
}

// A link is a link in the navigation of the console.
type link struct {
	Name, To string
	Here     bool
}

// Table returns the page's table with the given name, for use in a template: {{template "table" (.Table "limits")}}.
func (c *content) Table(name string) *Table {
	for _, t := range c.Tables {
		if t.Name == name {
			t.page = c
			return t
		}
	}
	return nil
}

// Picture returns the page's chart with the given name, for use in a template: {{template "picture" (.Picture
// "hour")}}.
func (c *content) Picture(name string) *Picture {
	for _, p := range c.Pictures {
		if p.Name == name {
			p.page = c
			return p
		}
	}
	return nil
}

// Token returns the session's token, which every form must contain. A template adds the hidden field with the token
// by {{template "token" .}}.
func (c *content) Token() string { return c.Visit.Session.Token }

// Nav returns the links of the navigation, for the layout of the page.
func (c *content) Nav() []link { return c.nav }

// The method Live reports whether the page updates itself while it is visible.
func (c *content) Live() bool { return c.page.Live }

// SignedIn returns the id of the visitor's API key. If no API keys are configured, SignedIn returns "".
func (c *content) SignedIn() string { return c.Visit.Session.Key }

// Now returns the time of the visit, for use in a template: {{when .Now .At}}.
func (c *content) Now() time.Time { return c.Visit.Now }

// Address returns the address of the page, which visitors can reload or send to colleagues.
func (c *content) Address() string { return c.at }

// The method When returns a time relative to the time of the visit, with the exact time as a tooltip.
func (c *content) When(at time.Time) template.HTML { return when(c.Visit.Now, at) }

// SignIn returns the data of the sign-in page, for its template. For other pages, SignIn returns nil.
func (c *content) SignIn() *signIn {
	if s, ok := c.Data.(signIn); ok {
		return &s
	}
	return nil
}

// Notice returns the data of a page that shows only a message, such as an error page. For other pages, Notice returns
// nil.
func (c *content) Notice() *notice {
	if n, ok := c.Data.(notice); ok {
		return &n
	}
	return nil
}
