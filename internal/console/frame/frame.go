package frame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"capper/client"
	"capper/internal/server/gate"
)

// Config holds the dependencies of a Frame. All fields of the Config of a Frame except SecureCookies are required.
type Config struct {
	API    http.Handler                                           // serves API calls within the process
	Access func() *gate.Control                                   // current API keys
	SignIn func(r *http.Request, key string) (gate.Caller, error) // returns the caller of a key; logs a refusal
	Clock  func() time.Time
	Logger *slog.Logger
	Pages  []Page // all console pages, in the order of the navigation
	// SecureCookies restricts the cookies to TLS connections, for services behind a proxy that terminates TLS.
	SecureCookies bool
}

// A Frame serves the pages of the console.
type Frame struct {
	cfg      Config
	client   *client.Client
	sessions *sessions
	assets   map[string]asset
	mux      *http.ServeMux
	// crossOrigin rejects forms that other websites send.
	crossOrigin *http.CrossOriginProtection
	notices     *template.Template
	uploads     chan struct{} // one element for each large form in memory
}

// uploadsAtOnce is the maximum number of large forms that visitors upload simultaneously. The console needs
// uploadsAtOnce because the budgets of the API do not limit the memory for uploaded forms.
const uploadsAtOnce = 2

// uploadTimeout is the time limit for uploading a large form. Because of the time limit for uploads, one slow upload
// blocks other visitors for at most 30 seconds.
const uploadTimeout = 30 * time.Second

// pageTimeout is the time limit for all API calls together that a console page makes for one request.
const pageTimeout = 15 * time.Second

// New returns a Frame that serves the pages in the argument cfg.
func New(cfg Config) (*Frame, error) {
	f := &Frame{cfg: cfg, sessions: newSessions(cfg.Access, cfg.Clock), mux: http.NewServeMux(),
		crossOrigin: http.NewCrossOriginProtection(), uploads: make(chan struct{}, uploadsAtOnce)}
	var err error
	if f.client, err = newClient(cfg.API); err != nil {
		return nil, err
	}
	if f.assets, err = readAssets(); err != nil {
		return nil, err
	}
	layout, err := template.New("layout.html").Funcs(functions(f.asset)).ParseFS(own, "assets/*.html")
	if err != nil {
		return nil, err
	}
	if f.notices, err = layout.Clone(); err != nil {
		return nil, err
	}
	for i := range cfg.Pages {
		if err := f.add(&cfg.Pages[i], layout); err != nil {
			return nil, err
		}
	}
	f.routeOwn()
	return f, nil
}

// ServeHTTP serves /console and all paths below it.
func (f *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	f.mux.ServeHTTP(w, r)
}

// The constant policy is the content security policy of pages: a page loads resources only from this service, and no
// other page may embed the page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// The function protect sets the security headers that every response has.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// The method add makes the frame serve a page, and adds the HTTP routes of this page.
func (f *Frame) add(p *Page, layout *template.Template) error {
	parsed, err := layout.Clone()
	if err == nil {
		parsed, err = parsed.ParseFS(p.Files, strings.Fields(p.Template)...)
	}
	if err != nil {
		return fmt.Errorf("page %q: %w", p.Path, err)
	}
	at := Path + "/" + p.Path
	if p.Path == "" {
		at = Path + "/{$}"
	}
	f.mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) { f.visit(w, r, p, parsed) })
	if p.Act != nil {
		f.mux.HandleFunc("POST "+at, func(w http.ResponseWriter, r *http.Request) { f.act(w, r, p, parsed) })
	}
	return nil
}

// The method visit shows a page to a visitor who has signed in, and redirects other visitors to the sign-in page.
func (f *Frame) visit(w http.ResponseWriter, r *http.Request, p *Page, t *template.Template) {
	v, ok := f.enter(r)
	if !ok {
		f.askToSignIn(w, r)
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, pageTimeout)
	defer cancel()
	v.ctx = ctx
	view, err := p.Show(v)
	if err == nil && view.To != "" {
		http.Redirect(w, r, view.To, http.StatusSeeOther)
		return
	}
	f.show(w, v, p, t, view, err)
}

// The method act processes a form that a visitor has submitted to a page.
func (f *Frame) act(w http.ResponseWriter, r *http.Request, p *Page, t *template.Template) {
	v, ok := f.enter(r)
	if !ok {
		f.askToSignIn(w, r)
		return
	}
	if p.MaxForm > defaultForm && (r.ContentLength < 0 || r.ContentLength > defaultForm) {
		leave, err := f.beginUpload(w)
		if err != nil {
			w.Header().Set("Connection", "close") // the console does not read the rest of the form
			f.show(w, v, p, t, nil, err)
			return
		}
		defer leave()
	}
	if err := f.readForm(w, r, p.MaxForm, v.Session.Accepts); err != nil {
		f.show(w, v, p, t, nil, err)
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx, pageTimeout)
	defer cancel()
	v.ctx = ctx
	view, to, err := p.Act(v)
	if err == nil && to != "" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	f.show(w, v, p, t, view, err)
}

func (f *Frame) enter(r *http.Request) (*Visit, bool) {
	who, ok := f.sessions.Of(r)
	return &Visit{
		Request: r, API: f.client, Now: f.cfg.Clock(), Session: who, control: f.cfg.Access(), sessions: f.sessions,
		ctx: visiting(r, who.Key),
	}, ok
}

// defaultForm is the maximum size in bytes of a submitted form, if the page does not set another maximum.
const defaultForm = 16 << 10

// beginUpload lets a visitor begin to upload a large form, and sets the time limit for the upload. After the upload,
// the caller must call the function leave that beginUpload returned. If uploadsAtOnce uploads are already running,
// beginUpload returns an error.
func (f *Frame) beginUpload(w http.ResponseWriter) (leave func(), err error) {
	select {
	case f.uploads <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "10")
		return nil, refused(http.StatusServiceUnavailable, "Other large files are being read at the moment.",
			"Send the file again in a moment.")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(uploadTimeout)) // only connections in tests have no deadlines
	return func() {
		_ = control.SetReadDeadline(time.Time{})
		<-f.uploads
	}, nil
}

// readForm reads a submitted form. The method readForm rejects a form of another website, and a form for whose token
// the function "accepts" returns false.
func (f *Frame) readForm(w http.ResponseWriter, r *http.Request, most int64, accepts func(token string) bool) error {
	if err := f.crossOrigin.Check(r); err != nil {
		return refused(http.StatusForbidden, "This form was sent from another website, so nothing was done.",
			"Open the page here and send the form again.")
	}
	most = cmp.Or(most, defaultForm)
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseMultipartForm(most)
	if errors.Is(err, http.ErrNotMultipart) {
		err = r.ParseForm()
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refused(http.StatusRequestEntityTooLarge, fmt.Sprintf("The request is larger than %s bytes.",
			number(most)), "Send less data at once.")
	case err != nil:
		return refused(http.StatusBadRequest, "The form could not be read.", "Open the page and send the form again.")
	case !accepts(r.PostFormValue("token")):
		return refused(http.StatusForbidden, "This form belongs to another session, so nothing was done.",
			"Open the page again and send the form again.")
	}
	return nil
}

// The method show responds to a visitor with the whole page, or with the requested table or chart of the page.
func (f *Frame) show(w http.ResponseWriter, v *Visit, p *Page, t *template.Template, view *View, err error) {
	content := &content{View: view, Visit: v, page: p, frame: f, nav: f.nav(p), at: addressOf(v.Request)}
	if err != nil {
		f.fail(w, content, err)
		return
	}
	query := v.URL.Query()
	switch query.Get("format") {
	case "csv":
		f.export(w, content, query.Get("table"))
	case "svg":
		f.draw(w, content, query.Get("picture"), query.Get("theme") == "dark", query.Get("narrow") != "")
	default:
		f.render(w, content, t, max(view.Status, http.StatusOK))
	}
}

// addressOf returns the address of the requested page, including those query parameters of the request that belong to
// the page.
func addressOf(r *http.Request) string {
	query := r.URL.Query()
	for _, name := range []string{"format", "table", "picture", "theme", "v", againParameter} {
		query.Del(name)
	}
	return (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}).String()
}

// The method nav returns the links of the navigation. The argument "here" is the current page, whose link is marked. If
// "here" is nil, no link is marked.
func (f *Frame) nav(here *Page) (links []link) {
	for i := range f.cfg.Pages {
		if p := &f.cfg.Pages[i]; p.Nav != "" {
			links = append(links, link{p.Nav, Path + "/" + p.Path, here != nil &&
				(p == here || p.Nav == here.Under)})
		}
	}
	return links
}

// The method render renders a whole page from its template, and then writes the response. If the HTTP status is 503,
// render() sets the header Retry-After.
func (f *Frame) render(w http.ResponseWriter, c *content, t *template.Template, status int) {
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "layout", c); err != nil {
		f.cfg.Logger.ErrorContext(c.Visit.Context(), "page not shown", "path", c.page.Path, "error", err)
		http.Error(w, "The page could not be shown; the log of the service shows the reason.",
			http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // a write error means that the client has disconnected
}
