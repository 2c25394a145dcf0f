package frame

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"capper/client"
	"capper/internal/server/wire"
)

// These constants are the URL paths for signing in to the console and signing out.
const (
	signInPath  = Path + "/sign-in"
	signOutPath = Path + "/sign-out"
)

// signIn is the data for the template of the sign-in page.
type signIn struct {
	Next    string // address after signing in
	Token   string
	Refused string // reason why the last attempt failed; "": first attempt
	Ended   bool   // the session of the visitor has ended
}

// routeOwn adds the routes of the console that belong to no Page, such as the routes of the sign-in page and the
// assets.
func (f *Frame) routeOwn() {
	f.mux.HandleFunc("GET "+signInPath, f.showSignIn)
	f.mux.HandleFunc("POST "+signInPath, f.takeKey)
	f.mux.HandleFunc("POST "+signOutPath, f.signOut)
	f.mux.HandleFunc("GET "+assetPath+"{name}", f.serveAsset)
	f.mux.HandleFunc("GET "+Path, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, Path+"/", http.StatusSeeOther)
	})
	f.mux.HandleFunc(Path+"/", f.notFound)
}

// askToSignIn redirects a visitor without a session to the sign-in page. If the request updates a part of a page, or
// loads a chart, askToSignIn responds with an error instead.
func (f *Frame) askToSignIn(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(partHeader) != "" || r.URL.Query().Get("format") == "svg" {
		http.Error(w, "The session has ended: sign in again.", http.StatusUnauthorized)
		return
	}
	if fromElsewhere(r) {
		f.comeAgain(w, r)
		return
	}
	to := url.Values{}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		to.Set("next", r.URL.RequestURI())
	}
	if _, err := r.Cookie(name); err == nil {
		to.Set("ended", "1")
	}
	http.Redirect(w, r, signInPath+"?"+to.Encode(), http.StatusSeeOther)
}

// partHeader is the HTTP header by which the console recognises requests from pages that update themselves.
const partHeader = "X-Capper-Live"

// againParameter is the query parameter that marks the second request for an address, so that the console does not
// cause a redirect loop.
const againParameter = "again"

// fromElsewhere reports whether the visitor has followed a link on another website. When a visitor follows a link on
// another website, the browser does not send the session cookie.
func fromElsewhere(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return r.Method == http.MethodGet && (site == "cross-site" || site == "same-site") &&
		!r.URL.Query().Has(againParameter)
}

// comeAgain responds with a page that makes the browser request the same address again, this time with the session
// cookie.
func (f *Frame) comeAgain(w http.ResponseWriter, r *http.Request) {
	c := f.blank(r)
	to := c.with(againParameter, "1")
	w.Header().Set("Refresh", "0; url="+to)
	f.notify(w, c, http.StatusOK, "One moment", notice{What: "Another website sent you here.",
		Do: "Check the address below before you continue.", To: to, Go: "Go on"})
}

// The method blank returns the content of a page without a Page value, such as the sign-in page.
func (f *Frame) blank(r *http.Request) *content {
	v, _ := f.enter(r)
	return &content{Visit: v, page: &Page{}, frame: f, at: addressOf(r)}
}

// formCookie is the name of a cookie that ties the sign-in form to the browser that loaded the form.
const formCookie = "capper_console_form"

func (f *Frame) showSignIn(w http.ResponseWriter, r *http.Request) {
	next := returnTo(r.URL.Query().Get("next"))
	if _, ok := f.sessions.Of(r); ok {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	f.offerSignIn(w, r, http.StatusOK, signIn{Next: next, Ended: r.URL.Query().Get("ended") != ""})
}

func (f *Frame) offerSignIn(w http.ResponseWriter, r *http.Request, status int, s signIn) {
	nonce := rand.Text()
	if before, err := r.Cookie(formCookie); err == nil && len(before.Value) == len(nonce) {
		nonce = before.Value // another tab may show the same form
	}
	s.Token = formToken(nonce)
	cookie := end(f.secure(r))
	cookie.Name, cookie.Value, cookie.Path, cookie.MaxAge = formCookie, nonce, signInPath, 3600
	http.SetCookie(w, cookie)
	c := f.blank(r)
	c.View = &View{Title: "Sign in", Data: s}
	f.render(w, c, f.notices, status)
}

// takeKey begins a session for a visitor who has sent an API key in the sign-in form. If the API key is wrong, takeKey
// shows the sign-in page again.
func (f *Frame) takeKey(w http.ResponseWriter, r *http.Request) {
	accepts := func(token string) bool {
		cookie, err := r.Cookie(formCookie)
		return err == nil && subtle.ConstantTimeCompare([]byte(token), []byte(formToken(cookie.Value))) == 1
	}
	if err := f.readForm(w, r, 0, accepts); err != nil {
		said := err.Error() + " Send it again from here."
		if _, none := r.Cookie(formCookie); none != nil && f.cfg.SecureCookies && r.TLS == nil {
			said += " The console needs an address that begins with https://, because its cookies are for TLS only."
		}
		f.offerSignIn(w, r, http.StatusForbidden, signIn{Next: returnTo(r.PostFormValue("next")), Refused: said})
		return
	}
	next := returnTo(r.PostFormValue("next"))
	who, err := f.cfg.SignIn(r, strings.TrimSpace(r.PostFormValue("key")))
	if err != nil {
		refusal := wire.FailureOf(err)
		said := "This key is not valid. Enter the whole text ID.SECRET."
		switch refusal.Code {
		case client.CodeForbidden:
			said = "This key lacks the scope read, which the console requires. Use another key, or have the scope " +
				"added."
		case client.CodeRateLimited:
			wait := wholeSeconds(refusal.RetryAfter)
			w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())))
			said = fmt.Sprintf("Too many wrong keys with this id came from your network address. Enter the key again "+
				"in %s.", Span(wait))
		}
		f.offerSignIn(w, r, refusal.Code.Status(), signIn{Next: next, Refused: said})
		return
	}
	http.SetCookie(w, f.sessions.Begin(who.Key, f.secure(r)))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// The method secure reports whether the console tells browsers to send its cookies only over TLS.
func (f *Frame) secure(r *http.Request) bool { return r.TLS != nil || f.cfg.SecureCookies }

// wholeSeconds rounds a duration up to whole seconds, for the header Retry-After.
func wholeSeconds(wait time.Duration) time.Duration {
	return max(wait+time.Second-1, time.Second).Truncate(time.Second)
}

// signOut ends the session in the visitor's browser.
func (f *Frame) signOut(w http.ResponseWriter, r *http.Request) {
	if who, ok := f.sessions.Of(r); ok {
		if err := f.readForm(w, r, 0, who.Accepts); err != nil {
			f.fail(w, f.blank(r), err)
			return
		}
	}
	http.SetCookie(w, end(f.secure(r)))
	http.Redirect(w, r, signInPath, http.StatusSeeOther)
}

func (f *Frame) notFound(w http.ResponseWriter, r *http.Request) {
	if _, ok := f.sessions.Of(r); !ok {
		f.askToSignIn(w, r)
		return
	}
	c := f.blank(r)
	c.nav = f.nav(nil)
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		f.notify(w, c, http.StatusMethodNotAllowed, titles(http.StatusForbidden), notice{
			What: "This address accepts no data.", Do: "Start at the Overview.", To: Path + "/",
			Go: "To the Overview",
		})
		return
	}
	f.notify(w, c, http.StatusNotFound, titles(http.StatusNotFound), notice{
		What: "The console has no page at this address.", Do: "Start at the Overview.", To: Path + "/",
		Go: "To the Overview",
	})
}

func formToken(nonce string) string {
	sum := sha256.Sum256([]byte("capper console sign-in " + nonce))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// returnTo returns the address of the console page that the visitor sees after signing in. If the requested address
// is outside the console, returnTo returns the address of the first page.
func returnTo(asked string) string {
	home := Path + "/"
	at, err := url.Parse(asked)
	if err != nil || at.Scheme != "" || at.Host != "" || at.User != nil || at.Opaque != "" ||
		strings.ContainsAny(asked, "\\\r\n\t") {
		return home
	}
	clean := path.Clean(at.Path)
	if !strings.HasPrefix(at.Path, home) || !strings.HasPrefix(clean+"/", home) || clean == signInPath ||
		clean == signOutPath {
		return home
	}
	return (&url.URL{Path: at.Path, RawPath: at.RawPath, RawQuery: at.RawQuery}).String()
}
