package frame_test

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/server/gate"
)

// hostile lists dangerous texts that are valid message ids of 1 to 128 bytes.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `'onmouseover='alert(1)`,
	`</title><svg onload=alert(1)>`, "{{.Token}}", "javascript:alert(1)", "&lt;b&gt;",
	"=HYPERLINK(\"http://evil\")", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", " =1", "\u202egnp.exe", "a\x00b\x1b[31m",
	"\xff\xfe", strings.Repeat("é", 64), strings.Repeat("w", 128), "a/b?c#d%2e",
}

const template = `{{define "main"}}<p title="{{.Data}}">{{.Data}}</p>{{template "table" (.Table "hostile")}}{{template "picture" (.Picture "hostile")}}
<form method="post">{{template "token" .}}</form>{{end}}`

// newFrame returns a frame without keys around one page. Each API call returns the error.
func newFrame(t *testing.T, show func(*frame.Visit) (*frame.View, error), act func(*frame.Visit) (*frame.View, string,
	error), refuse *api.Refusal) http.Handler {
	t.Helper()
	open, err := gate.New(gate.Rules{})
	require.NoError(t, err)
	f, err := frame.New(frame.Config{
		API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(refuse.Code.Status())
			_ = json.NewEncoder(w).Encode(api.Error{Error: *refuse})
		}),
		Access: func() *gate.Control { return open }, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
		Pages: []frame.Page{{
			Path: "page/{id}", Nav: "Page", Template: "page.html",
			Files: fstest.MapFS{"page.html": {Data: []byte(template)}}, Show: show, Act: act,
		}},
	})
	require.NoError(t, err)
	return f
}

func hostileView(text string) *frame.View {
	return &frame.View{
		Title: text, Question: text, Data: text, Calls: []string{"GET /v1/messages/" + text},
		Tables: []*frame.Table{{
			Name: "hostile", Caption: text, Columns: []frame.Column{{Title: text, Means: text},
				{Title: "n", Number: true}, {Title: "link"}, {Title: "at"}},
			Rows: [][]frame.Cell{{frame.Text(text).With(text), frame.Count(-5), frame.Link(text, "/console/page/"+
				url.PathEscape(text)), frame.Time(time.Unix(0, 0))}},
		}},
		Pictures: []*frame.Picture{{Name: "hostile", Alt: text,
			Draw: func(bool) ([]byte, error) { return []byte("<svg/>"), nil }}},
	}
}

func get(f http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestHostileTextIsText(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		f := newFrame(t, func(*frame.Visit) (*frame.View, error) { return hostileView(text), nil }, nil, nil)
		at := "/console/page/" + url.PathEscape(text)
		page := get(f, at)
		require.Equal(t, http.StatusOK, page.Code, text)
		body := page.Body.String()
		require.Equal(t, 1, strings.Count(body, "<script"), text)
		tags := regexp.MustCompile(`="[^"]*"`).ReplaceAllString(body, "") // text in quotes is no markup
		require.NotRegexp(t, `(?i)<svg|\son[a-z]+\b[^<]*>|src=x>`, regexp.MustCompile(`>[^<]*`).ReplaceAllString(tags,
			">"), text)
		require.NotContains(t, body, `href="javascript`)

		rows, err := csv.NewReader(strings.NewReader(get(f, at+"?format=csv&table=hostile").Body.String())).ReadAll()
		require.NoError(t, err, text)
		for _, cell := range []string{rows[0][0], rows[1][0], rows[1][2]} {
			require.NotRegexp(t, `^\s*[=+\-@]`, cell, text)
		}
		require.Equal(t, "-5", rows[1][1], "numbers stay numbers")
		require.Equal(t, "1970-01-01T00:00:00Z", rows[1][3])
	}
}

func TestRefusalsOfTheAPIAreSaidInPlainWords(t *testing.T) {
	t.Parallel()
	for _, code := range api.Codes() {
		refusal := &api.Refusal{Code: code, Message: "<b>the API's words</b>"}
		f := newFrame(t, func(v *frame.Visit) (*frame.View, error) {
			_, err := v.API.Status(v.Context())
			return nil, err
		}, nil, refusal)
		if code == api.CodeRateLimited {
			continue // the client waits for it
		}
		page := get(f, "/console/page/1")
		if code == api.CodeUnauthorized {
			require.Equal(t, http.StatusSeeOther, page.Code)
			continue
		}
		require.GreaterOrEqual(t, page.Code, 400, code)
		require.Contains(t, page.Body.String(), `role="alert"`)
		require.Contains(t, page.Body.String(), "&lt;b&gt;the API&#39;s words")
	}
	f := newFrame(t, func(*frame.Visit) (*frame.View, error) { return nil, errors.New("secret of the inside") }, nil,
		nil)
	require.NotContains(t, get(f, "/console/page/1").Body.String(), "secret")
}

func TestAFormNeedsItsToken(t *testing.T) {
	t.Parallel()
	done := 0
	f := newFrame(t, func(*frame.Visit) (*frame.View, error) { return hostileView("x"), nil },
		func(v *frame.Visit) (*frame.View, string, error) {
			done++
			return nil, "/console/page/done-" + v.PostFormValue("what"), nil
		}, nil)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(get(f,
		"/console/page/1").Body.String())[1]
	send := func(body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/console/page/1", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i+1 < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w
	}
	for _, wrong := range []string{"", "token=", "token=x", "token=" + token[1:], "token=%zz", "token=" + token +
		"&token2=" + strings.Repeat("x", 17<<10)} {
		require.GreaterOrEqual(t, send(wrong).Code, 400, wrong)
	}
	require.Equal(t, http.StatusForbidden, send("token="+token, "Sec-Fetch-Site", "cross-site").Code)
	require.Equal(t, http.StatusForbidden, send("token="+token, "Origin", "http://evil.example").Code)
	require.Zero(t, done)
	answer := send("what=it&token="+token, "Origin", "http://example.com")
	require.Equal(t, http.StatusSeeOther, answer.Code)
	require.Equal(t, "/console/page/done-it", answer.Header().Get("Location"))
	require.Equal(t, 1, done)
}

func TestWords(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		250 * time.Millisecond: "250 ms", time.Second: "1 second", 90 * time.Second: "1 minute and 30 seconds",
		time.Hour: "1 hour", 30 * time.Hour: "1 day and 6 hours", 7 * 24 * time.Hour: "7 days",
		time.Hour + time.Second: "1 hour",
	} {
		require.Equal(t, want, frame.Span(d))
	}
	now := time.Unix(1e9, 0)
	require.Equal(t, []string{"now", "3 minutes ago", "in 2 days"}, []string{
		frame.Relative(now, now), frame.Relative(now, now.Add(-200*time.Second)),
		frame.Relative(now, now.Add(50*time.Hour)),
	})
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567"} {
		require.Equal(t, want, frame.Count(n).Text)
	}
	require.Equal(t, "1,234.50", frame.Number(1234.5, 2).Text)
	require.Equal(t, "a, b and c", frame.List([]string{"a", "b", "c"}))
	require.Equal(t, []string{"0", "0.25", "2.5", "12,346"}, []string{frame.PerSecond(0), frame.PerSecond(.25),
		frame.PerSecond(2.5), frame.PerSecond(12345.6)})
}
