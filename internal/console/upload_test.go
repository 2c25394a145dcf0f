package console_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// hold starts to send a large form and stops in the middle.
func (s *service) hold() net.Conn {
	s.t.Helper()
	to, err := url.Parse(s.url)
	require.NoError(s.t, err)
	conn, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", to.Host)
	require.NoError(s.t, err)
	var cookies []string
	for _, cookie := range s.jar {
		cookies = append(cookies, cookie.Name+"="+cookie.Value)
	}
	_, err = fmt.Fprintf(conn, "POST /console/try HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nContent-Type: "+
		"application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\nids=1",
		to.Host, strings.Join(cookies, "; "))
	require.NoError(s.t, err)
	return conn
}

// TestLargeFormsAreReadAFewAtATime checks that only a few large forms are in memory at a time. A sender who stops in
// the middle delays others only for a limited time.
func TestLargeFormsAreReadAFewAtATime(t *testing.T) {
	t.Parallel()
	s := newService(t, keys())
	s.signIn(reader, "")
	large := func() reply {
		form := url.Values{"token": {s.get("/console/try").token(t)}, "ids": {strings.Repeat("7 ", 20_000)}}
		return s.do(http.MethodPost, "/console/try", form)
	}
	require.NotEqual(t, http.StatusServiceUnavailable, large().status)
	var held []net.Conn
	for range 20 {
		held = append(held, s.hold())
	}
	testkit.Eventually(t, func() bool { return large().status == http.StatusServiceUnavailable },
		"all places are taken")
	require.Equal(t, "10", large().header.Get("Retry-After"))
	small := url.Values{"token": {s.get("/console/try").token(t)}, "ids": {"7 8"}}
	require.NotEqual(t, http.StatusServiceUnavailable, s.do(http.MethodPost, "/console/try", small).status,
		"small ones need no place")
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
	testkit.Eventually(t, func() bool { return large().status != http.StatusServiceUnavailable },
		"who has gone holds no place")
}
