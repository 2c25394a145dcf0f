package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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

// output runs capper with the arguments and returns its standard output. status is the expected exit status.
func output(t *testing.T, status int, arguments ...string) (stdout, stderr string) {
	t.Helper()
	var out, log strings.Builder
	command := exec.Command("capper", arguments...)
	command.Stdout, command.Stderr = &out, &log
	_ = command.Run()
	require.Equal(t, status, command.ProcessState.ExitCode(), "capper %v: %s%s", arguments, &out, &log)
	return out.String(), log.String()
}

// send calls a path of the service with a body, and returns the status and the body of the answer.
func (p *process) send(method, path, body string) (status int, text string) {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	require.NoError(p.t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(p.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	return response.StatusCode, string(raw)
}

// TestTheAuditTakesEveryKindOfIDs follows users through calls, answers from the audit, the commands, an erasure and a
// compaction. One user is in no file.
func TestTheAuditTakesEveryKindOfIDs(t *testing.T) {
	t.Parallel()
	for kind, users := range map[string][]string{
		"uuid": {"018f3c4e-7a1b-7c3d-9e5f-000000000001", "018f3c4e-7a1b-7c3d-9e5f-000000000002",
			"018f3c4e-7a1b-7c3d-9e5f-000000000009", "018f3c4e-7a1b-7c3d-9e5f-00000000000f"},
		"uint64": {"1", "18446744073709551615", "9", "15"},
		"text":   {`a/b & "c" <d>+%2F`, "é", "out@x.com", "stranger"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, file := serveIDs(t, kind, users[:3]...)
			p.signal(syscall.SIGTERM)
			place := filepath.Join(filepath.Dir(file), "audit")
			write(t, file, readFile(t, file)+"audit: {to: "+place+"}\n")
			p = serve(t, file)

			list, err := json.Marshal(users)
			require.NoError(t, err)
			call := func(message string) {
				status, text := p.send("POST", "/v1/filter", `{"message_id": "`+message+`", "channel": "push", "user_ids": `+
					string(list)+`}`)
				require.Equal(t, http.StatusOK, status, text)
			}
			for _, message := range []string{"m1", "m2", "m3"} { // the limits are 2 a day in active, and 1 for others
				call(message)
			}
			status, text := p.send("POST", "/v1/sets/opted-out/members", `{"add": [`+quoted(t, users[0])+`]}`)
			require.Equal(t, http.StatusOK, status, text)

			decided := func(user string) (fates []string) {
				status, text := p.send("GET", "/v1/users/"+url.PathEscape(user)+"/decisions", "")
				require.Equal(t, http.StatusOK, status, text)
				var got struct {
					UserID    string `json:"user_id"`
					Decisions []struct{ Outcome, Limit, Set string }
				}
				require.NoError(t, json.Unmarshal([]byte(text), &got))
				require.Equal(t, user, got.UserID)
				for _, d := range got.Decisions {
					fates = append(fates, strings.TrimSpace(d.Outcome+" "+d.Limit+" "+d.Set))
				}
				return fates
			}
			testkit.Eventually(t, func() bool { return len(decided(users[0])) == 4 })
			require.Equal(t, []string{"allowed", "allowed", "denied daily", "added  opted-out"}, decided(users[0]))
			require.Equal(t, []string{"allowed", "denied daily", "denied daily"}, decided(users[3]))
			require.Equal(t, []string{"denied suppressed opted-out", "denied suppressed opted-out",
				"denied suppressed opted-out"}, decided(users[2]))

			var sent struct {
				Allowed []string
				Denied  map[string][]string
			}
			status, text = p.send("GET", "/v1/decisions?message_id=m1&channel=push", "")
			require.Equal(t, http.StatusOK, status, text)
			require.NoError(t, json.Unmarshal([]byte(text), &sent))
			ids := exec.Command("capper", "ids", "--url", p.url)
			ids.Stdin = strings.NewReader(users[3] + "\n")
			row, err := ids.CombinedOutput()
			require.NoError(t, err, "%s", row)
			image := strings.TrimSpace(strings.Split(string(row), "\t")[1])
			stranger := "image:" + image
			if kind == "uint64" {
				stranger = users[3]
			}
			require.ElementsMatch(t, []string{users[0], users[1], stranger}, sent.Allowed)
			require.Equal(t, map[string][]string{"suppressed": {users[2]}}, sent.Denied)

			status, text = p.send("POST", "/v1/messages/m1/release", `{"channel": "push"}`)
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, `"found":3,"released":3,"absent":0,"unavailable":0,"missing":0`)
			call("m4")
			testkit.Eventually(t, func() bool { return len(decided(users[3])) == 5 })
			require.Equal(t, []string{"allowed", "denied daily", "denied daily", "released", "allowed"},
				decided(users[3]))

			out, _ := output(t, 0, "audit", "user", users[0], "--config", file, "--json")
			require.Equal(t, 6, strings.Count(out, "\n"))
			require.Equal(t, 6, strings.Count(out, `{"user_id":`+quoted(t, users[0])+`,`), out)
			out, _ = output(t, 0, "audit", "user", "image:"+image, "--audit", place)
			require.Equal(t, 6, strings.Count(out, "\n"), out)
			_, log := output(t, 2, "audit", "user", users[0], "--audit", place)
			require.Contains(t, log, "the audit has user ids of the kind "+kind+": the command needs "+
				"the hash key of these ids from the location of the segments: set --segments or --config")
			out, _ = output(t, 0, "audit", "message", "m1", "--config", file)
			require.Regexp(t, `(?m)^calls +2$`, out)
			require.Regexp(t, `(?m)^released +3$`, out)
			out, _ = output(t, 0, "audit", "verify", "--config", file)
			require.Contains(t, out, "0 over-sends; 0 other findings")
			out, _ = output(t, 0, "whatif", "--limits", file, "--config", file)
			require.Contains(t, out, "active")

			status, text = p.send("DELETE", "/v1/users/"+url.PathEscape(users[0]), "")
			require.Equal(t, http.StatusNoContent, status, text)
			require.Empty(t, decided(users[0]))
			p.signal(syscall.SIGTERM)
			out, _ = output(t, 0, "audit", "compact", "--config", file)
			require.Contains(t, out, "1 rewritten (6 entries of erased users removed)")
			names := func(arguments ...string) map[string]bool {
				out, _ := output(t, 0, append([]string{"audit", "export", "--audit", place}, arguments...)...)
				found := map[string]bool{}
				for line := range strings.Lines(out) {
					var row struct {
						UserID string `json:"user_id"`
					}
					require.NoError(t, json.Unmarshal([]byte(line), &row))
					found[row.UserID] = true
				}
				return found
			}
			require.Equal(t, map[string]bool{users[1]: true, users[2]: true, stranger: true}, names("--config", file))
			images := names()
			require.Len(t, images, 3)
			require.Contains(t, images, "image:"+image)
			for name := range images {
				require.Regexp(t, regexp.MustCompile(`^image:[0-9a-f]{16}$`), name)
			}
		})
	}
}

// TestAnAuditOfOtherIDsIsRefusedAtTheStart starts services at the location of an audit with ids of another kind or key.
func TestAnAuditOfOtherIDsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	p, file := serveIDs(t, "uint64", "1", "2", "9")
	p.signal(syscall.SIGTERM)
	place := filepath.Join(t.TempDir(), "audit")
	audited := func(file string) { write(t, file, readFile(t, file)+"audit: {to: "+place+"}\n") }
	audited(file)
	p = serve(t, file)
	status, text := p.send("POST", "/v1/filter", `{"message_id": "m1", "user_ids": [1]}`)
	require.Equal(t, http.StatusOK, status, text)
	p.signal(syscall.SIGTERM)
	before := filesIn(t, place)

	other, otherFile := serveIDs(t, "uint64", "1", "2", "9")
	other.signal(syscall.SIGTERM)
	dense := configure(t, "{default: {daily: 1}}")
	for _, c := range []struct{ file, says string }{
		{otherFile, "and the ids of this deployment are uint64 with the check "},
		{dense, "and the ids of this deployment are dense"},
	} {
		audited(c.file)
		p := launch(t, c.file)
		<-p.exited
		require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
		require.Contains(t, p.log.String(), "audit.to: "+place+": the records have ids of the kind uint64 with the ")
		require.Contains(t, p.log.String(), c.says)
		require.Equal(t, before, filesIn(t, place))
	}
	_, log := output(t, 3, "audit", "user", "1", "--config", otherFile)
	require.Contains(t, log, "but the audit has user ids of the kind uint64 with the check ")
	_, log = output(t, 3, "audit", "export", "--config", otherFile)
	require.Contains(t, log, "but the audit has user ids of the kind uint64 with the check ")
}

func filesIn(t *testing.T, place string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(place, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			found[path] = readFile(t, path)
		}
		return err
	}))
	return found
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	require.NoError(t, e.Encode(text))
	return strings.TrimSpace(out.String())
}

// TestTheCampaignPageCountsHeldBackUsersOfEveryKind checks that the users whom the audit lists as denied are counted,
// also those whom no file names.
func TestTheCampaignPageCountsHeldBackUsersOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind, id := range map[string]string{
		"uuid": "018f3c4e-7a1b-7c3d-9e5f-%012d", "uint64": "1844674407370955%04d", "text": "user %d",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var users []string
			for n := range 123 { // a store counts messages to 100 users or more
				users = append(users, fmt.Sprintf(id, n))
			}
			p, file := serveIDs(t, kind, users[:3]...)
			p.signal(syscall.SIGTERM)
			write(t, file, readFile(t, file)+"audit: {to: "+filepath.Join(filepath.Dir(file), "audit")+"}\n")
			p = serve(t, file)
			list, err := json.Marshal(users)
			require.NoError(t, err)
			for _, message := range []string{"m1", "m2"} { // the third is suppressed, and 120 may receive one a day
				status, text := p.send("POST", "/v1/filter", `{"message_id": "`+message+
					`", "channel": "push", "user_ids": `+string(list)+`}`)
				require.Equal(t, http.StatusOK, status, text)
			}
			want := "The forecast decides a sample of 1 user of the 121 users for "
			if kind == "uint64" { // the key leads from images to ids
				want = "The forecast decides each of the 121 users for "
			}
			testkit.Eventually(t, func() bool {
				_, text := p.send("GET", "/v1/decisions?message_id=m2&channel=push", "")
				return strings.Contains(text, `"suppressed"`)
			})
			status, text := p.send("GET", "/console/campaign?id=m2&channel=push", "")
			require.Equal(t, http.StatusOK, status, text)
			require.Contains(t, text, want)
		})
	}
}
