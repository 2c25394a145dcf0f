package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// TestTheConsoleShowsUsersOfEveryKind looks up users by ids that need an escape in a URL, and erases one.
func TestTheConsoleShowsUsersOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind, user := range map[string]string{
		"text": `a/b & "c" <d>+%2F`, "uuid": "018f3c4e-7a1b-7c3d-9e5f-000000000001", "uint64": "18446744073709551615",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			other, none := "5", "9"
			if kind == "uuid" {
				other, none = strings.Replace(user, "01", "02", 1), "018f3c4e-7a1b-7c3d-9e5f-000000000009"
			}
			p, _ := serveIDs(t, kind, user, other, none)
			require.NoError(t, post(p.url+"/v1/filter", map[string]any{"message_id": "m", "channel": "push",
				"user_ids": []string{user}}, &struct{}{}))
			jar, err := cookiejar.New(nil)
			require.NoError(t, err)
			visitor := &http.Client{Jar: jar}
			page := func(response *http.Response, err error) (int, string) {
				t.Helper()
				require.NoError(t, err)
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				require.NoError(t, err)
				return response.StatusCode, html.UnescapeString(string(text))
			}
			at := p.url + "/console/users?id=" + url.QueryEscape(user)
			status, text := page(visitor.Get(at))
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, "User "+user)
			require.Contains(t, text, "The audit is off")
			require.Contains(t, text, "GET /v1/users/"+url.PathEscape(user))
			require.Contains(t, text, "/console/users?id="+url.QueryEscape(user)+"&days=31")

			form := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(text)
			require.NotNil(t, form)
			status, text = page(visitor.PostForm(at, url.Values{"token": {form[1]}, "again": {user}}))
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, "User "+user+" was erased")
			require.Contains(t, text, "No send of this user is recorded")

			if kind != "text" {
				status, text = page(visitor.Get(p.url + "/console/users?id=x7"))
				require.Equal(t, http.StatusBadRequest, status)
				require.Contains(t, text, `The id is not a`)
			}
			status, text = page(visitor.PostForm(p.url+"/console/try", url.Values{"token": {form[1]},
				"ids": {user + "\r\n" + other + "\r\n" + user}}))
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, "2 of 2")
			require.Contains(t, text, "1 ids were given more than once")
			require.Contains(t, text, "The next seven days")
			if kind != "text" {
				status, text = page(visitor.PostForm(p.url+"/console/try", url.Values{"token": {form[1]},
					"ids": {user + " x7"}}))
				require.Equal(t, http.StatusBadRequest, status, text)
				require.Contains(t, text, "Line 1: the id is not a ")
			}
			status, text = page(visitor.Get(p.url + "/console/try?audience=active"))
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, "2 of 2")
		})
	}
}

// TestARunWithUUIDsGoesOnAfterACrash kills the service while a command filters a file. The same command again has
// every user once.
func TestARunWithUUIDsGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	const users = 30_000
	uuid := func(i int) string { return fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", i) }
	p, file := serveIDs(t, "uuid", uuid(1), uuid(2), uuid(users+1))
	dir := t.TempDir()
	var audience strings.Builder
	for i := range users {
		fmt.Fprintln(&audience, strings.ToUpper(uuid(i)))
	}
	write(t, filepath.Join(dir, "audience.txt"), audience.String())
	run := func(url string) ([]byte, error) {
		command := exec.Command("capper", "filter", "audience.txt", "--url", url, "--message-id", "m", "--batch", "500",
			"--parallel", "2", "--timeout", "1s", "--allowed", "allowed.txt", "--replayed", "replayed.txt")
		command.Dir = dir
		return command.CombinedOutput()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := run(p.url)
		ended <- err
	}()
	const allowedUsers = `capper_users_total{limit="",outcome="allowed",segment="default"}`
	testkit.Eventually(t, func() bool { return counter(t, p, allowedUsers) > 0 || len(ended) > 0 })
	p.signal(syscall.SIGKILL)
	<-ended
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "allowed.txt")))
	p = serve(t, file)
	out, err := run(p.url)
	require.NoError(t, err, "%s", out)
	allowed, err := os.ReadFile(filepath.Join(dir, "allowed.txt"))
	require.NoError(t, err)
	got := map[string]bool{}
	for line := range strings.Lines(string(allowed)) {
		got[strings.TrimSpace(line)] = true
	}
	require.Len(t, got, users)
	require.Equal(t, users*37, len(allowed), "each user once")
	require.True(t, got[uuid(7)])
	out, err = run(p.url)
	require.NoError(t, err, "%s", out)
	replayed, err := os.ReadFile(filepath.Join(dir, "replayed.txt"))
	require.NoError(t, err)
	require.Equal(t, allowed, replayed)
}
