//go:build storms

package alerts

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// cause is something that is broken, the alerts that fire then, all of them, and what mends it.
type cause struct {
	what  string
	ruin  func(t *testing.T)
	fires []string
	mend  func(t *testing.T)
	// may fire as well: time in rules is divided, and the seconds that calls wait for a node are not.
	may []string
	// stays are alerts that go on firing when it is mended: what was lost of a month's budget stays lost.
	stays []string
}

// patience is how long an alert may take to fire or to end: the longest takes 20 s when nothing else runs.
const patience = 3 * time.Minute

// ruin breaks one thing after the other.
func (f *fleets) ruin(t *testing.T, job string, causes []cause) {
	var staying []string
	for _, c := range causes {
		began := time.Now()
		c.ruin(t)
		staying = append(staying, c.stays...)
		expected := slices.Concat(c.fires, c.may, staying)
		f.await(t, job, c.what, expected, func(firing []string) bool {
			return !slices.ContainsFunc(c.fires, func(name string) bool { return !slices.Contains(firing, name) })
		})
		fired := time.Since(began)
		f.explained(t, job)
		c.mend(t)
		f.await(t, job, c.what+", mended", expected, func([]string) bool {
			// not pending either: instances see things one after the other
			return !slices.ContainsFunc(f.prometheus.alerts(job), func(a alert) bool {
				name := a.Labels["alertname"]
				return slices.Contains(c.fires, name) && !slices.Contains(staying, name)
			})
		})
		t.Logf("%s: %v after %v, and mended after %v", c.what, c.fires, fired.Round(100*time.Millisecond),
			time.Since(began).Round(100*time.Millisecond))
	}
}

// await waits until what fires is as it should be, and sees that nothing else ever does.
func (f *fleets) await(t *testing.T, job, what string, may []string, done func(firing []string) bool) {
	t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for ends := time.Now().Add(patience); ; <-look.C {
		firing := f.prometheus.firing(job)
		require.Empty(t, f.prometheus.unexpected(job, may), "%s:\n%s", what, f.prometheus.told(job))
		if done(firing) {
			return
		}
		require.True(t, time.Now().Before(ends), "%s: want %v, fires %v:\n%s", what, may, firing,
			f.prometheus.told(job))
	}
}

// explained sees that what people read of an alert is whole.
func (f *fleets) explained(t *testing.T, job string) {
	for _, a := range f.prometheus.alerts(job) {
		for _, text := range a.Annotations {
			require.NotContains(t, text, "<", "%v", a.Labels)
			require.NotContains(t, text, "no value", "%v", a.Labels)
		}
	}
}

func causesOfSegments(s *service) []cause {
	return []cause{
		{what: "a broken configuration file", fires: []string{"CapperConfigRefused"},
			ruin: func(*testing.T) { s.write("limits: [") }, mend: func(*testing.T) { s.configure(2) }},
		{what: "a damaged bitmap at the source", fires: []string{"CapperRefreshFailing"},
			ruin: func(t *testing.T) { damageNext(t, s.source) },
			mend: func(t *testing.T) { publishTo(t, s.source, 0, 101) }},
		{what: "a certificate that ends tomorrow", fires: []string{"CapperCertificateExpires"},
			ruin: func(*testing.T) { s.certify(20 * time.Hour) },
			mend: func(*testing.T) { s.certify(90 * 24 * time.Hour) }},
		{what: "builds that have not come for 30 hours", fires: []string{"CapperGenerationOld"},
			ruin: func(t *testing.T) { publishTo(t, s.source, 30*time.Hour, 101) },
			mend: func(t *testing.T) { publishTo(t, s.source, 0, 101) }},
		{what: "a set that lost most of its users", fires: []string{"CapperGenerationRefused"},
			ruin: func(t *testing.T) { publishTo(t, s.source, 0, 10) },
			mend: func(t *testing.T) { publishTo(t, s.source, 0, 101) }},
	}
}

func causesOfRecords(s *service) []cause {
	return []cause{
		{what: "senders that want more than a pacer gives", fires: []string{"CapperPacerSaturated"},
			may:  []string{"CapperPacerFull"}, // one permit is many in a divided minute
			ruin: s.askForPermits, mend: func(*testing.T) { s.asking.stop() }},
		// whose minutes are divided, and the ten seconds are not
		{what: "a place of the audit that is gone", fires: []string{"CapperAuditNotFlushed"},
			may: []string{"CapperAuditBehind"},
			ruin: func(t *testing.T) {
				require.NoError(t, os.Rename(s.audit(), s.audit()+".away"))
				require.NoError(t, os.WriteFile(s.audit(), nil, 0o600))
			},
			mend: func(t *testing.T) {
				require.NoError(t, os.Remove(s.audit()))
				require.NoError(t, os.Rename(s.audit()+".away", s.audit()))
			}},
		{what: "an instance that is not there", fires: []string{"CapperDown"},
			ruin: func(*testing.T) { s.stop() }, mend: func(*testing.T) { s.serve() }},
	}
}

func (f *fleets) causesOfRedis(t *testing.T) []cause {
	kill := func(t *testing.T, replica string) { require.NoError(t, f.cluster.Kill(replica)) }
	restart := func(t *testing.T, replicas ...string) {
		for _, r := range replicas {
			require.NoError(t, f.cluster.Restart(r))
		}
	}
	slow := []string{"CapperLatencyBudgetBurnsFast", "CapperLatencyBudgetBurnsSlowly"}
	// the store remembers an outage for half a minute, here an hour
	outage := append(slices.Clone(slow), "CapperStoreDegraded")
	both, first := f.replicasOf(t, f.cluster.Addrs[0]), f.replicasOf(t, f.cluster.Addrs[1])
	return []cause{
		{what: "an instance with other limits", fires: []string{"CapperInstancesDiffer"},
			ruin: func(*testing.T) { f.redis[1].configure(3) }, mend: func(*testing.T) { f.redis[1].configure(2) }},
		{what: "a replica that was killed", fires: []string{"CapperTooFewReplicas"}, may: slow, stays: slow[1:],
			ruin: func(t *testing.T) { kill(t, first[0]) }, mend: func(t *testing.T) { restart(t, first[0]) }},
		{what: "both replicas of a master that were killed", fires: []string{"CapperShardDegraded",
			"CapperUsersUnavailable", "CapperAvailabilityBudgetBurnsFast"},
			may: outage, stays: []string{"CapperAvailabilityBudgetBurnsSlowly"},
			ruin: func(t *testing.T) { kill(t, both[0]); kill(t, both[1]) },
			mend: func(t *testing.T) { restart(t, both...) }},
		{what: "a Redis that does not answer at all", fires: []string{"CapperStoreDown", "CapperUsersUnavailable",
			"CapperAvailabilityBudgetBurnsFast"}, may: outage,
			ruin: f.eachNode(f.cluster.Pause), mend: f.eachNode(f.cluster.Resume)},
	}
}

// replicasOf are the replicas of a master.
func (f *fleets) replicasOf(t *testing.T, master string) (replicas []string) {
	_, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	id, err := exec.Command("redis-cli", "-p", port, "cluster", "myid").Output()
	require.NoError(t, err)
	nodes, err := exec.Command("redis-cli", "-p", port, "cluster", "nodes").Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(nodes)) {
		if fields := strings.Fields(line); fields[3] == strings.TrimSpace(string(id)) {
			addr, _, _ := strings.Cut(fields[1], "@")
			replicas = append(replicas, addr)
		}
	}
	require.Len(t, replicas, 2)
	return replicas
}

func (f *fleets) eachNode(do func(addr string) error) func(t *testing.T) {
	return func(t *testing.T) {
		for _, addr := range f.cluster.Addrs {
			require.NoError(t, do(addr))
		}
	}
}

// damageNext publishes a generation of which one bitmap is damaged.
func damageNext(t *testing.T, source string) {
	aside := filepath.Join(t.TempDir(), "segments")
	publishTo(t, aside, 0, 103)
	bitmaps, err := filepath.Glob(filepath.Join(aside, "bitmaps", "*"))
	require.NoError(t, err)
	for _, name := range bitmaps {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		to := filepath.Join(source, "bitmaps", filepath.Base(name))
		if _, err := os.Stat(to); err == nil {
			continue // both have it
		}
		content[len(content)-1] ^= 1
		require.NoError(t, os.WriteFile(to, content, 0o600))
	}
	manifests, err := filepath.Glob(filepath.Join(aside, "generations", "*"))
	require.NoError(t, err)
	for _, name := range append(manifests, filepath.Join(aside, "current.json")) { // the pointer last
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		relative, err := filepath.Rel(aside, name)
		require.NoError(t, err)
		replace(t, filepath.Join(source, relative), content)
	}
}

// askForPermits asks for more permits than there are, until asking is stopped.
func (s *service) askForPermits(*testing.T) {
	s.asking = keep(s.t, func() {
		_ = s.call(s.t.Context(), http.MethodPost, "/v1/permits", map[string]any{"pacers": []string{"tight"},
			"permits": 5})
	})
}
