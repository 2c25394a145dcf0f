package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/testkit"
)

// Whatever data teams and operators do in whatever order, the opted-out are never sent
// to: a start without their set, a rollback to before it, a crash, and a reload.
func TestTheOptedOutAreNeverSentTo(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	dir := filepath.Dir(file)
	place := filepath.Join(dir, "segments")
	without := live(t, place)
	const suppress = "suppress: {opted-out: all}\n"
	write(t, file, embedded(dir, "{default: {daily: 1}}")+suppress)
	run := func(args ...string) {
		t.Helper()
		out, err := exec.Command(segmentbuild(t), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	status := func(p *process) (segments map[string]any) { return p.get("/v1/status")["segments"].(map[string]any) }
	suppressed := func(p *process, message string) {
		t.Helper()
		var got api.FilterIDs
		require.NoError(t, post(p.url+"/v1/filter", map[string]any{"message_id": message, "user_ids": []int{5}}, &got))
		require.Equal(t, []api.Denial{{UserID: 5, Segment: "new", Limit: api.LimitSuppressed, Set: "opted-out"}},
			got.Denied)
	}

	p := launch(t, file)
	testkit.Eventually(t, func() bool {
		return p.hasExited() || !p.ready() && p.url != "" && strings.Contains(fmt.Sprint(p.get("/readyz")),
			"generation "+without+" has no set opted-out")
	}, "%s", p.log)
	got, err := p.filter("m1", 5, 6)
	require.NoError(t, err)
	require.Equal(t, []uint32{5, 6}, got.Unavailable)

	ids := filepath.Join(dir, "out.txt")
	write(t, ids, "5\n")
	users := filepath.Join(dir, "new.txt")
	write(t, users, "5\n6\n")
	run("build", "--to", place, "--segment", "new="+users, "--set", "opted-out="+ids, "--force", "--reason", "test")
	with := live(t, place)
	testkit.Eventually(t, p.ready)
	suppressed(p, "m1")

	run("rollback", without, "--at", place)
	require.Equal(t, without, live(t, place))
	testkit.Eventually(t, func() bool { return status(p)["error"] != nil })
	require.Equal(t, "generation "+without+" is rejected: the published segments lack these sets, which the "+
		"configuration requires: opted-out",
		status(p)["error"])
	require.Equal(t, with, status(p)["generation"])
	require.True(t, p.ready())
	suppressed(p, "m2")

	p.signal(syscall.SIGKILL)
	p = serve(t, file)
	require.Equal(t, with, status(p)["generation"], "the cache has one with the set")
	require.Equal(t, "cache", status(p)["origin"])
	suppressed(p, "m3")

	write(t, file, embedded(dir, "{default: {daily: 1}}")+"no_longer_suppressed: [opted-out]\n")
	testkit.Eventually(t, func() bool { return status(p)["generation"] == without })
	write(t, file, embedded(dir, "{default: {daily: 1}}")+suppress)
	testkit.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["config"]),
			"yet: suppress.opted-out: generation (published version) "+without)
	})
	run("rollback", with, "--at", place)
	testkit.Eventually(t, func() bool { return p.get("/v1/status")["config"].(map[string]any)["error"] == nil })
	suppressed(p, "m4")
}

// The calls of the audit make the sets of a store that lost them, whatever was the order of the calls, and again
// without another effect.
func TestChangesOfTheAuditAreReplayed(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "audit")
	start := func() (*process, func(args ...string) string) {
		file := configure(t, "{default: {daily: 1}}")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		write(t, file, string(text)+"sets: {opted-out: {live: true}, sms-stop: {live: true}}\naudit: {to: "+place+"}\n")
		p := serve(t, file)
		return p, func(args ...string) string {
			t.Helper()
			command := exec.Command("capper", append([]string{"set"}, args...)...)
			command.Env = append(os.Environ(), "CAPPER_URL="+p.url)
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
			return string(out)
		}
	}
	p, set := start()
	set("add", "opted-out", "1", "2", "3")
	set("add", "opted-out", "4", "--at", "2026-01-02T03:04:05Z")
	set("remove", "opted-out", "2")
	set("add", "sms-stop", "5")
	want := set("members", "opted-out")
	require.Contains(t, want, "2026-01-02T03:04:05.000Z")
	p.signal(syscall.SIGTERM)
	lost := time.Now().Format(time.RFC3339Nano) // replays are in the audit too

	p, set = start()
	require.Contains(t, set("members", "opted-out"), "no call has changed set opted-out")
	for range 2 {
		out := set("replay", "--audit", place, "--set", "opted-out", "--until", lost)
		require.Regexp(t, `calls +3\b`, out)
		require.Regexp(t, `users +5\b`, out)
		require.Equal(t, want, set("members", "opted-out"))
	}
	require.Contains(t, set("members", "sms-stop"), "no call")
	require.Contains(t, set("replay", "--audit", place, "--since", "1h", "--json"), `"calls":`)
	require.Contains(t, set("members", "sms-stop"), "added")
	p.signal(syscall.SIGTERM)
}
