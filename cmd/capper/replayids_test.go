package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangesOfEveryKindAreReplayed makes the changes of sets in an audit again after the store is lost, also those of
// a user whom no generation knows.
func TestChangesOfEveryKindAreReplayed(t *testing.T) {
	t.Parallel()
	const uuid = "018f3c4e-7a1b-7c3d-9e5f-00000000000"
	for kind, users := range map[string][]string{
		"uuid":   {uuid + "1", uuid + "2", uuid + "9", uuid + "f"},
		"uint64": {"1", "18446744073709551615", "9", "15"},
		"text":   {`a/b & "c"`, "é", "out@x.com", "stranger"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, file := serveIDs(t, kind, users[:3]...)
			p.signal(syscall.SIGTERM)
			dir := filepath.Dir(file)
			place := filepath.Join(dir, "audit")
			write(t, file, readFile(t, file)+"audit: {to: "+place+"}\n")
			p = serve(t, file)
			change := func(body string) {
				status, text := p.send("POST", "/v1/sets/opted-out/members", body)
				require.Equal(t, http.StatusOK, status, text)
			}
			change(`{"add": [` + quoted(t, users[0]) + `, ` + quoted(t, users[3]) + `]}`)
			change(`{"remove": [` + quoted(t, users[2]) + `]}`)
			want, _ := output(t, 0, "set", "members", "opted-out", "--json", "--url", p.url)
			require.Equal(t, 3, strings.Count(want, "\n"))
			p.signal(syscall.SIGTERM)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "log.db")))
			require.NoError(t, os.Remove(filepath.Join(dir, "log.db.id")))
			p = serve(t, file)
			lost, _ := output(t, 0, "set", "members", "opted-out", "--json", "--url", p.url)
			require.Empty(t, lost)

			out, _ := output(t, 0, "set", "replay", "--audit", place, "--since", "1h", "--url", p.url)
			require.Regexp(t, `(?m)^calls +2$`, out)
			require.Regexp(t, `(?m)^users +3$`, out)
			got, _ := output(t, 0, "set", "members", "opted-out", "--json", "--url", p.url)
			require.Equal(t, want, got)
			status, text := p.send("POST", "/v1/filter", `{"record": false, "channel": "push", "user_ids": [`+
				quoted(t, users[0])+`, `+quoted(t, users[2])+`, `+quoted(t, users[3])+`]}`)
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, `"allowed":[`+quoted(t, users[2])+`]`)

			other, _ := serveIDs(t, kind, users[:3]...) // with another key
			_, failed := output(t, 3, "set", "replay", "--audit", place, "--since", "1h", "--url", other.url)
			require.Contains(t, failed, "the records have ids of the kind "+kind+" with the check ")
		})
	}
}
