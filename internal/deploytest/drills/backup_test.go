//go:build storms

package drills

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// Every node is lost with its data. A new cluster, of other shards, gets the copy that was made under load, and
// then, from the audit, the sends since: the logs are what callers were told, all of it.
func TestRedisIsRestoredFromABackup(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 10 * time.Second})
	place := newPlace(t, cluster.Addrs)
	audit := "audit: {to: " + filepath.Join(place.dir, "audit") + "}\n"
	at := freeAddr(t)
	capper := place.start(at, "", audit)
	load := newLoad(t, "http://"+at)
	early, late := block(30_000), block(40_000)
	load.goOn(60)
	load.fill("early", early)

	copied := filepath.Join(t.TempDir(), "backup")
	t.Logf("%s", backup(t, "save", cluster.Addrs[0], copied))
	load.fill("late", late)
	load.goOn(60)
	require.Empty(t, load.failures(), "while the backup was made")
	load.end()

	for _, addr := range cluster.Addrs {
		require.NoError(t, cluster.Kill(addr))
	}
	capper.stop()

	place.mustExist = true
	place.addrs = testcluster.Start(t, testcluster.Options{Masters: 4, Replicas: 1,
		NodeTimeout: 10 * time.Second}).Addrs
	whole, err := os.ReadFile(filepath.Join(copied, "SHA256SUMS"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(copied, "SHA256SUMS"), append(whole, strings.Repeat("0", 64)+
		"  ./lost.rdb\n"...), 0o644))
	require.Contains(t, refusal(t, "restore", place.addrs[0], copied), "is not what was saved",
		"a shard's copy is missing")
	require.NoError(t, os.WriteFile(filepath.Join(copied, "SHA256SUMS"), whole, 0o644))
	require.Contains(t, place.refused(audit), "set store.redis.create: true to create", "an empty cluster")
	t.Logf("%s", backup(t, "restore", place.addrs[0], copied))
	require.Contains(t, refusal(t, "restore", place.addrs[0], copied), "is not empty")
	place.start(at, "", audit)
	require.Empty(t, load.allowedOf("again", early), "who had all before the backup")
	require.Len(t, load.previewed(late), len(late), "what came after it is missing")

	since, err := os.ReadFile(filepath.Join(copied, "since"))
	require.NoError(t, err)
	t.Logf("%s", place.importAudit(at, strings.TrimSpace(string(since))))
	require.Empty(t, load.allowedOf("again", late), "who had the rest after the backup")
	load.settle()
}

// block is a hundred neighbours.
func block(first uint32) (block []uint32) {
	for n := range uint32(100) {
		block = append(block, first+n)
	}
	return block
}

// fill sends to the users until no more may be sent.
func (l *load) fill(message string, to []uint32) {
	l.Helper()
	for n := range most {
		require.Len(l, l.allowedOf(fmt.Sprintf("%s-%d", message, n), to), len(to))
	}
	require.Empty(l, l.allowedOf(message+"-more", to))
}

// allowedOf asks for sends, and is the users who are allowed.
func (l *load) allowedOf(message string, of []uint32) []uint32 {
	l.Helper()
	var got decided
	require.NoError(l, l.post("/v1/filter", map[string]any{"message_id": message, "channel": "push", "user_ids": of},
		&got))
	return got.Allowed
}

// previewed is who could be sent to.
func (l *load) previewed(of []uint32) []uint32 {
	l.Helper()
	var got decided
	require.NoError(l, l.post("/v1/filter", map[string]any{"record": false, "channel": "push", "user_ids": of}, &got))
	require.Empty(l, got.Unavailable)
	return got.Allowed
}

// backup runs the script that is shipped.
func backup(t testing.TB, args ...string) string {
	t.Helper()
	out, err := script(t, args...)
	require.NoError(t, err, "%s", out)
	return out
}

func refusal(t testing.TB, args ...string) string {
	t.Helper()
	out, err := script(t, args...)
	require.Error(t, err, "%s", out)
	return out
}

func script(t testing.TB, args ...string) (string, error) { return scriptBy(t, "redis-cli", args...) }

// scriptBy has it call another redis-cli.
func scriptBy(t testing.TB, cli string, args ...string) (string, error) {
	cmd := exec.Command("../../../deploy/redis-backup.sh", args...)
	_, port, _ := strings.Cut(freeAddr(t), ":")
	cmd.Env = append(os.Environ(), "PORT="+port, "REDIS_CLI="+cli)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// refused is what a start says that does not come to serve.
func (p *place) refused(more string) string {
	p.Helper()
	file := p.configure(freeAddr(p), more)
	out, err := exec.Command(testkit.Program(p, "capper"), "serve", "--config", file).CombinedOutput()
	require.Error(p, err, "%s", out)
	return string(out)
}

// importAudit brings back what was recorded since then, as docs/moving.md says.
func (p *place) importAudit(addr, since string) string {
	p.Helper()
	line := `set -o pipefail
capper audit export --audit "$AUDIT" --since "$SINCE" --out since.ndjson &&
  grep -E '"outcome":"(allowed|replayed)"' since.ndjson |
  capper import - --format ndjson --at-column time --verify`
	cmd := exec.Command("bash", "-c", line)
	cmd.Dir = p.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(testkit.Program(p, "capper"))+":"+os.Getenv("PATH"),
		"CAPPER_URL=http://"+addr, "SINCE="+since, "AUDIT="+filepath.Join(p.dir, "audit"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(p, err, "%s%s", out, &errs)
	return string(out)
}
