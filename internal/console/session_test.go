package console_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/console"
	"capper/internal/server/gate"
)

// The list addresses holds the pages that need only the key, and silent those of them without a form.
var (
	silent    = []string{"/console/", "/console/limits", "/console/pacers", "/console/segments"}
	addresses = append([]string{"/console/users", "/console/try"}, silent...)
)

func TestWithoutKeysTheConsoleIsOpen(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	for _, path := range addresses {
		require.Equal(t, http.StatusOK, s.get(path).status, path)
	}
	require.Empty(t, s.jar, "nobody needs a session")
	require.Equal(t, "/console/", s.get("/console").header.Get("Location"))
}

func TestWithKeysOneSignsInAndGoesOnWhereOneWas(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	for _, path := range addresses {
		refused := s.get(path + "?a=b")
		require.Equal(t, http.StatusSeeOther, refused.status)
		require.Equal(t, "/console/sign-in?next="+url.QueryEscape(path+"?a=b"), refused.header.Get("Location"))
	}
	form := s.get("/console/sign-in?next=%2Fconsole%2Flimits%3Fa%3Db")
	require.Contains(t, form.body, `name="next" value="/console/limits?a=b"`)
	require.NotContains(t, form.body, "<nav", "what is there is not told to who may not see it")

	welcome := s.signIn(reader, "/console/limits?a=b")
	require.Equal(t, http.StatusSeeOther, welcome.status, welcome.body)
	require.Equal(t, "/console/limits?a=b", welcome.header.Get("Location"))
	set := welcome.header.Get("Set-Cookie")
	for _, attribute := range []string{"HttpOnly", "SameSite=Strict", "Path=/console", "Max-Age=28800"} {
		require.Contains(t, set, attribute)
	}
	for _, path := range addresses {
		page := s.get(path)
		require.Equal(t, http.StatusOK, page.status, path)
		require.Contains(t, page.body, "Key <b>reader</b>")
	}
	require.Equal(t, "/console/", s.get("/console/sign-in").header.Get("Location"), "who is signed in need not")
	require.Contains(t, s.log.String(), "action=sign-in result=done client=client-reader key=reader")

	page := s.get("/console/")
	require.Equal(t, http.StatusForbidden, s.do(http.MethodPost, "/console/sign-out",
		url.Values{"token": {"made-up"}}).status)
	require.Equal(t, http.StatusOK, s.get("/console/").status, "a page of elsewhere signs nobody out")
	require.Equal(t, http.StatusSeeOther, s.do(http.MethodPost, "/console/sign-out",
		url.Values{"token": {page.token(t)}}).status)
	require.Equal(t, http.StatusSeeOther, s.get("/console/").status)
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	part := func(s *service) reply {
		s.header.Set("X-Capper-Live", "1")
		defer s.header.Del("X-Capper-Live")
		return s.get("/console/")
	}
	for name, end := range map[string]func(s *service){
		"its time is over": func(s *service) { s.clock.Advance(8 * time.Hour) },
		"its key is removed": func(s *service) {
			require.NoError(s.t,
				s.server.SetAccess(gate.Rules{Keys: keys().Keys[1:]}))
		},
		"its key has a new secret": func(s *service) { replace(s, key("reader.another", gate.ScopeRead)) },
		"its key may not read":     func(s *service) { replace(s, key(reader, gate.ScopeFilter)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t, keys())
			require.Equal(t, http.StatusSeeOther, s.signIn(reader, "").status)
			s.clock.Advance(8*time.Hour - time.Second)
			require.Equal(t, http.StatusOK, s.get("/console/").status)
			require.Equal(t, http.StatusOK, part(s).status)
			end(s)
			require.Equal(t, "/console/sign-in?ended=1&next=%2Fconsole%2Flimits",
				s.get("/console/limits").header.Get("Location"))
			require.Contains(t, s.get("/console/sign-in?ended=1").body, "Your session has ended")
			require.Equal(t, http.StatusUnauthorized, part(s).status, "the script is told, and asks no further")
		})
	}
}

func replace(s *service, first gate.Key) {
	require.NoError(s.t, s.server.SetAccess(gate.Rules{Keys: append([]gate.Key{first}, keys().Keys[1:]...)}))
}

func TestOtherKeysComingAndGoingEndNoSession(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(reader, "")
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: []gate.Key{key("fresh.secret", gate.ScopeRead),
		key(reader, gate.ScopeRead)}}))
	require.Equal(t, http.StatusOK, s.get("/console/").status)
}

func TestAnotherInstanceReadsASession(t *testing.T) {
	t.Parallel()
	one, other := newService(t, keys()), newService(t, keys())
	one.signIn(reader, "")
	other.jar = one.jar
	require.Equal(t, http.StatusOK, other.get("/console/").status)
}

func TestACookieThatWasTamperedWithIsNone(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(reader, "")
	good := *s.jar["capper_console"]
	bytes, err := base64.RawURLEncoding.DecodeString(good.Value)
	require.NoError(t, err)
	try := func(value string) {
		s.jar["capper_console"] = &http.Cookie{Name: good.Name, Value: value}
		require.Equal(t, http.StatusSeeOther, s.get("/console/").status, value)
	}
	for i := range len(bytes) * 8 {
		changed := append([]byte(nil), bytes...)
		changed[i/8] ^= 1 << (i % 8)
		try(base64.RawURLEncoding.EncodeToString(changed))
	}
	for _, value := range []string{"", "reader", "reader.", good.Value + "A", good.Value[1:], strings.Repeat("A", 4000),
		base64.RawURLEncoding.EncodeToString(make([]byte, 36))} {
		try(value)
	}
	s.jar["capper_console"] = &good
	require.Equal(t, http.StatusOK, s.get("/console/").status)
}

func TestAWrongKeyIsSaidOnceAndAudited(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	for _, wrong := range []string{"", "reader", "reader.wrong", "nobody.secret", "reader." + strings.Repeat("x", 400),
		"<script>.x", "a b"} {
		refused := s.signIn(wrong, "/console/limits")
		require.Equal(t, http.StatusUnauthorized, refused.status, wrong)
		require.Contains(t, refused.body, "This key is not valid.")
		require.Contains(t, refused.body, `value="/console/limits"`, "the page that was asked for is kept")
		require.NotContains(t, s.jar, "capper_console")
		require.NotContains(t, refused.body, "<script>.x")
	}
	forbidden := s.signIn(filterer, "")
	require.Equal(t, http.StatusForbidden, forbidden.status)
	require.Contains(t, forbidden.body, "lacks the scope read, which the console requires")
	log := s.log.String()
	require.Contains(t, log, `action=key result=refused client="" key=reader`)
	require.Contains(t, log, `action=key result=refused client=client-filterer key=filterer`)
	require.Contains(t, log, `path=/console/sign-in`)
	require.NotContains(t, log, "nobody", "what a caller made up is not for logs")
	for range 30 {
		s.signIn("reader.wrong", "")
	}
	require.LessOrEqual(t, strings.Count(s.log.String(), "code=unauthorized"), 11, "the log has a bound, that of calls")
}

func TestOneIsSentToPagesOfOursOnly(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	for _, elsewhere := range []string{
		"https://evil.example/console/", "//evil.example/console/", "/\\evil.example", "/console/\\evil",
		"\\\\evil.example", "javascript:alert(1)", "/console/../v1/status",
		"/v1/status", "/consoleevil", "/console/sign-in", "/console/sign-out", "/console/x/../../evil",
		"http:/console/", "/console/\r\nX: y", "console/limits", "?", "/console//../..//evil",
	} {
		require.Equal(t, "/console/", s.signIn(reader, elsewhere).header.Get("Location"), elsewhere)
		delete(s.jar, "capper_console")
	}
	for _, ours := range []string{"/console/", "/console/limits", "/console/limits?format=csv&table=limits",
		"/console/messages/a%2Fb"} {
		require.Equal(t, ours, s.signIn(reader, ours).header.Get("Location"))
		delete(s.jar, "capper_console")
	}
}

func TestFormsOfElsewhereDoNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	token := s.get("/console/sign-in").token(t)
	form := url.Values{"token": {token}, "key": {reader}}
	for name, change := range map[string]func(){
		"another origin":        func() { s.header.Set("Origin", "https://evil.example") },
		"the browser says so":   func() { s.header.Set("Sec-Fetch-Site", "cross-site") },
		"no cookie of the form": func() { delete(s.jar, "capper_console_form") },
	} {
		kept := s.jar["capper_console_form"]
		change()
		require.Equal(t, http.StatusForbidden, s.do(http.MethodPost, "/console/sign-in", form).status, name)
		s.header, s.jar = http.Header{}, map[string]*http.Cookie{"capper_console_form": kept}
	}
	require.Equal(t, http.StatusForbidden, s.do(http.MethodPost, "/console/sign-in",
		url.Values{"key": {reader}}).status, "no token")
	large := url.Values{"token": {token}, "key": {strings.Repeat("k", 20<<10)}}
	require.Equal(t, http.StatusForbidden, s.do(http.MethodPost, "/console/sign-in", large).status)
	require.Equal(t, http.StatusSeeOther, s.do(http.MethodPost, "/console/sign-in", form).status)
}

func TestALinkOfElsewhereFindsTheSession(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.header.Set("Sec-Fetch-Site", "cross-site") // the browser withholds the cookie
	page := s.get("/console/limits?x=1")
	require.Equal(t, http.StatusOK, page.status)
	require.Equal(t, "0; url=/console/limits?again=1&x=1", page.header.Get("Refresh"))
	require.Equal(t, http.StatusSeeOther, s.get("/console/limits?again=1&x=1").status, "nobody is sent in a circle")
}

// TestWrongKeysHaveToWait checks that a guesser is slowed down, while others behind the same address sign in.
func TestWrongKeysHaveToWait(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	for i := range 10 {
		require.Equal(t, http.StatusUnauthorized, s.signIn(fmt.Sprint("reader.guess-", i), "").status)
	}
	for _, late := range []string{"reader.guess", reader} { // a right key tells a guesser nothing now
		refused := s.signIn(late, "/console/limits")
		require.Equal(t, http.StatusTooManyRequests, refused.status)
		require.Equal(t, "2", refused.header.Get("Retry-After"))
		require.Contains(t, refused.body, "Too many wrong keys with this id came from your network address. Enter the "+
			"key again in 2 seconds.")
		require.Contains(t, refused.body, `value="/console/limits"`, "the page that was asked for is kept")
		require.NotContains(t, s.jar, "capper_console")
	}
	require.Equal(t, http.StatusForbidden, s.signIn(filterer, "").status)
	require.Equal(t, http.StatusSeeOther, s.signIn(admin, "").status, "a colleague behind the same address")
	delete(s.jar, "capper_console")
	s.clock.Advance(2 * time.Second)
	for range 20 {
		require.Equal(t, http.StatusSeeOther, s.signIn(reader, "").status)
		delete(s.jar, "capper_console")
	}
	require.Equal(t, http.StatusUnauthorized, s.signIn("reader.guess", "").status)
	require.Equal(t, http.StatusTooManyRequests, s.signIn("reader.guess", "").status)
}

// TestCookiesAreForTLSBehindAProxy checks the setting for a proxy that speaks TLS.
func TestCookiesAreForTLSBehindAProxy(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		s := newService(t, keys(), func(cfg *console.Config) { cfg.SecureCookies = secure })
		form := s.get("/console/sign-in")
		welcome := s.do(http.MethodPost, "/console/sign-in", url.Values{"token": {form.token(t)}, "key": {reader}})
		require.Equal(t, http.StatusSeeOther, welcome.status, welcome.body)
		left := s.do(http.MethodPost, "/console/sign-out", url.Values{"token": {s.get("/console/").token(t)}})
		require.Equal(t, http.StatusSeeOther, left.status)
		for _, answer := range []reply{form, welcome, left} {
			require.Equal(t, secure, strings.Contains(answer.header.Get("Set-Cookie"), "; Secure"), answer.header)
		}
		delete(s.jar, "capper_console_form") // as a browser does on plain HTTP
		refused := s.do(http.MethodPost, "/console/sign-in", url.Values{"token": {form.token(t)}, "key": {reader}})
		require.Equal(t, http.StatusForbidden, refused.status)
		require.Equal(t, secure, strings.Contains(refused.body, "an address that begins with https://"), refused.body)
	}
}
