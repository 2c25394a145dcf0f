//go:build storms

package drills

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A service moves from the embedded store to Redis while callers go on: two passes beside it, with sends given
// back and users erased in between, a pass that is killed, then the last pass while it is stopped. Only calls of that
// moment fail; every send is there, once, and who has had theirs has had theirs.
func TestAServiceMovesToRedis(t *testing.T) {
	t.Parallel()
	place := newPlace(t, testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 10 * time.Second}).Addrs)
	addr := freeAddr(t)
	onRedis := place.configure(freeAddr(t), "")
	place.store = fmt.Sprintf("{kind: embedded, embedded: {path: %s/log.db}}", place.dir)
	embedded := place.start(addr, "", "")
	load := newLoad(t, "http://"+addr)
	load.goOn(200)

	var released, erased []uint32 // whom the load does not ask for
	for n := range uint32(5) {
		released, erased = append(released, 20_001+n), append(erased, 20_101+n)
	}
	load.ask("campaign", slices.Concat(released, erased))
	first := place.migrate(t, 0, onRedis, addr)
	require.Greater(t, first.Users, users/2)
	require.Equal(t, first.Users, first.Verified, "every log was read back")

	given := 0
	for killed := false; !killed; given++ { // one that came to its end brought over what was given back
		require.Less(t, given, len(released), "each pass came to its end")
		require.NoError(t, load.post("/v1/release", map[string]any{"message_id": "campaign", "channel": "push",
			"user_ids": released[given : given+1]}, new(any)))
		place.erase(t, addr, erased[given])
		killed = place.killedPass(t, onRedis, addr)
	}
	load.goOn(50)
	second := place.migrate(t, 0, onRedis, addr)
	require.Zero(t, second.Same, "after a pass that did not end, everybody is read back")
	require.Positive(t, second.Replaced, "what was given back and erased")
	third := place.migrate(t, 0, onRedis, addr)
	require.Greater(t, third.Same, 0)
	require.Empty(t, load.failures(), "nobody is unavailable while logs are copied")

	place.migrateFails(t, "another capper process has the store open", onRedis, addr, "--finish", place.dir+"/log.db")
	embedded.stop()
	last := place.migrate(t, 0, onRedis, addr, "--finish", place.dir+"/log.db")
	require.True(t, last.Finished)
	old := place.launch(addr, "", "")
	<-old.done
	require.Contains(t, old.log.String(), "log.db", "who starts on the embedded store again is refused")
	place.store = ""
	place.start(addr, "", "")
	load.failures()
	load.goOn(100)
	require.Empty(t, load.failures())
	for _, user := range slices.Concat(released[:given], erased[:given]) {
		require.Empty(t, load.log(user))
	}
	load.settle()
}

// passed is what `capper migrate --json` prints.
type passed struct {
	Users, Sends, Same, Verified, Replaced int
	Finished                               bool
	Moved                                  string
}

func (p *place) command(config, addr string, more ...string) *exec.Cmd {
	return exec.Command(testkit.Program(p, "capper"), append([]string{"migrate", "--json", "--url", "http://" +
		addr, "--config", config, "--work", p.dir + "/moving"}, more...)...)
}

func (p *place) migrate(t *testing.T, status int, config, addr string, more ...string) (done passed) {
	t.Helper()
	cmd := p.command(config, addr, more...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	require.Equal(t, status, cmd.ProcessState.ExitCode())
	require.NoError(t, json.Unmarshal(out, &done), "%s", out)
	t.Logf("%+v", done)
	return done
}

func (p *place) migrateFails(t *testing.T, want, config, addr string, more ...string) {
	t.Helper()
	out, err := p.command(config, addr, more...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), want)
}

// killedPass kills a pass when its copy is there. False: it was at its end before.
func (p *place) killedPass(t *testing.T, config, addr string) bool {
	t.Helper()
	cmd := p.command(config, addr)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	copied := func() bool {
		_, err := os.Stat(p.dir + "/moving/next.id")
		return err == nil
	}
	require.Eventually(t, func() bool { return copied() || len(ended) > 0 }, 2*time.Minute, time.Millisecond)
	_ = cmd.Process.Kill() // it may be at its end
	return testkit.Receive(t, ended) != nil && copied()
}

func (p *place) erase(t *testing.T, addr string, user uint32) {
	t.Helper()
	request, err := http.NewRequest(http.MethodDelete, fmt.Sprintf("http://%s/v1/users/%d", addr, user), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	response.Body.Close()
	require.Less(t, response.StatusCode, 300)
}
