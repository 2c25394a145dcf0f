package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/objects/s3test"
	"capper/internal/testkit"
)

// audited is a service that records into an audit, with what its callers were told.
type audited struct {
	*process
	file, to string
	segments string // shared by all
	first    uint32
	told     map[string]string // what became of a user, by message
	messages int
}

const strict, loose = "{default: {daily: 2}, segments: {active: {daily: 1}}}",
	"{default: {daily: 2}, segments: {active: {daily: 2}}}"

// newAudited is another service with the segments of the first one, nil for none.
func newAudited(t *testing.T, to string, first uint32, other *audited) *audited {
	a := configuredAudited(t, to, first, other)
	a.process = serve(t, a.file)
	return a
}

func configuredAudited(t *testing.T, to string, first uint32, other *audited) *audited {
	a := &audited{file: configure(t, strict), to: to, first: first, told: map[string]string{}}
	if a.segments = filepath.Dir(a.file) + "/segments"; other != nil {
		a.segments = other.segments
	}
	a.configure(t, strict)
	return a
}

func (a *audited) configure(t *testing.T, limits string) {
	dir := filepath.Dir(a.file)
	spool := ""
	if strings.HasPrefix(a.to, "s3:") {
		spool = ", spool: " + dir + "/spool"
	}
	content := strings.Replace(embedded(dir, limits), dir+"/segments", a.segments, 1)
	write(t, a.file, content+fmt.Sprintf("audit: {to: %q, roll: 1s%s}\n", a.to, spool))
}

// campaigns sends some messages, each asked for twice, to users of both segments, and gives a few back.
func (a *audited) campaigns(t *testing.T, n int) {
	for range n {
		a.messages++
		message := fmt.Sprintf("m-%d-%d", a.first, a.messages)
		var users []uint32
		for i := range uint32(40) {
			users = append(users, a.first+uint32(a.messages*7)%60+i, a.first+1000+i)
		}
		got, err := a.filter(message, users...)
		require.NoError(t, err)
		a.note(message, "allowed", got.Allowed)
		for _, d := range got.Denied {
			a.note(message, "denied", []uint32{d.UserID})
		}
		again, err := a.filter(message, users[:10]...)
		require.NoError(t, err)
		a.note(message, "replayed", again.Replayed)
		if len(got.Allowed) > 2 {
			var released map[string]any
			require.NoError(t, post(a.url+"/v1/release", map[string]any{"message_id": message, "channel": "push",
				"user_ids": got.Allowed[:2]}, &released))
			a.note(message, "released", got.Allowed[:2])
		}
	}
}

func (a *audited) note(message, outcome string, users []uint32) {
	for _, user := range users {
		a.told[fmt.Sprintf("%s %d %s", message, user, outcome)] = outcome
	}
}

// settled waits until all that was decided is on the disk.
func (a *audited) settled(t *testing.T) {
	asked := time.Now()
	testkit.Eventually(t, func() bool { return a.flushed().After(asked) })
}

// flushed is until when all that was decided is on the disk; zero before the first time.
func (p *process) flushed() time.Time {
	audit, _ := p.get("/v1/status")["audit"].(map[string]any)
	at, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(audit["flushed_at"]))
	return at
}

func (a *audited) restart(t *testing.T, by syscall.Signal) {
	a.signal(by)
	a.process = serve(t, a.file)
}

func (a *audited) reload(t *testing.T, limits string) {
	before := a.get("/v1/status")["config_version"]
	a.configure(t, limits)
	testkit.Eventually(t, func() bool { return a.get("/v1/status")["config_version"] != before })
}

// auditCommand runs `capper audit`.
func auditCommand(args ...string) (out string, status int) {
	cmd := exec.Command("capper", append([]string{"audit"}, args...)...)
	cmd.Env = os.Environ()
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() < 0 {
		return err.Error(), -1
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Two instances, one audit, 48 campaigns, retries and releases, kills, restarts and reloads
// in between: the audit is whole, has nothing twice, and says of every user what callers were told.
func TestTheAuditHoldsWhatCallersWereTold(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) string{
		"directory": func(t *testing.T) string { return filepath.Join(t.TempDir(), "audit") },
		"s3":        func(t *testing.T) string { return "s3://" + s3test.Bucket(t) + "/audit" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := place(t)
			one := newAudited(t, to, 1, nil)
			two := newAudited(t, to, 400, one)
			for round := range 4 {
				for _, a := range []*audited{one, two} {
					a.campaigns(t, 3)
					a.settled(t)
					if round%2 == 0 {
						a.restart(t, syscall.SIGKILL)
					} else {
						a.reload(t, []string{loose, strict}[round/2%2])
					}
					a.campaigns(t, 3)
				}
			}
			one.signal(syscall.SIGTERM)
			two.signal(syscall.SIGTERM)
			out, status := auditCommand("verify", "--config", one.file)
			require.Zero(t, status, out)
			require.Contains(t, out, "0 over-sends; 0 other findings")
			require.NotContains(t, out, "not judged")
			out, status = auditCommand("export", "--config", one.file)
			require.Zero(t, status, out)
			recorded := map[string]string{}
			for line := range strings.Lines(out) {
				var row struct {
					User    uint32 `json:"user_id"`
					Message string `json:"message_id"`
					Outcome string `json:"outcome"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				key := fmt.Sprintf("%s %d %s", row.Message, row.User, row.Outcome)
				if row.Outcome == "denied" && recorded[key] != "" {
					continue // in the retry again
				}
				require.Empty(t, recorded[key], "%s is recorded twice", key)
				recorded[key] = row.Outcome
			}
			for _, a := range []*audited{one, two} {
				for key, outcome := range a.told {
					require.Equal(t, outcome, recorded[key], key)
				}
			}
			require.Equal(t, 48, one.messages+two.messages)
		})
	}
}

// Two stores that do not know of each other send the same users too much: the audit tells.
func TestStoresThatDoNotShareAreFoundOut(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "audit")
	one := configuredAudited(t, to, 1, nil)
	two := configuredAudited(t, to, 1, one)
	clock := testkit.NewClockAt(time.Now().Add(-time.Minute))
	var endOne, endTwo func()
	one.process, endOne = inside(t, one.file, clock.Now)
	two.process, endTwo = inside(t, two.file, clock.Now)
	for i, a := range []*audited{one, two, one, two} {
		clock.Advance(time.Second) // calls within a few milliseconds leave open which of two instances was first
		_, err := a.filter(fmt.Sprint("m", i), 7, uint32(2000+i), 1500)
		require.NoError(t, err)
	}
	endOne()
	endTwo()
	out, status := auditCommand("verify", "--config", one.file)
	require.Equal(t, 8, status, out)
	require.Contains(t, out, "over_send: user 7 received more than 2 sends within 24h, the maximum of limit daily "+
		"of configuration ")
	require.Contains(t, out, "over_send: user 1500 received more than 1 sends within 24h")
	require.NotContains(t, out, "user 200")
	require.Contains(t, out, "3 over-sends; 0 other findings")
}
