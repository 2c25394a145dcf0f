//go:build storms

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
)

const movedLimits = "{default: {daily: 4}}\nsets: {stop: {live: true}}\n"

// move is an embedded store on its way to Redis.
type move struct {
	t           *testing.T
	file        string // configuration of the embedded store
	onRedis     string
	redis, work string
	*process
}

func newMove(t *testing.T) *move {
	m := &move{t: t, file: configure(t, movedLimits), redis: testcluster.Single(t, testcluster.Options{}).Addrs[0],
		work: filepath.Join(t.TempDir(), "work")}
	m.onRedis = onServer(t, m.redis, "{push: 1, email: 2}", movedLimits)
	m.process = serve(t, m.file)
	return m
}

// store is the directory of the embedded store.
func (m *move) store() string { return filepath.Join(filepath.Dir(m.file), "log.db") }

// args returns the arguments of a pass. A flag in more replaces the usual one.
func (m *move) args(more ...string) []string {
	args := []string{"migrate", "--work", m.work}
	for _, usual := range [][]string{{"--url", m.url}, {"--config", m.onRedis}} {
		if !slices.Contains(more, usual[0]) {
			args = append(args, usual...)
		}
	}
	return append(args, more...)
}

func (m *move) migrate(status int, more ...string) string {
	m.t.Helper()
	return capperOutput(m.t, status, m.args(more...)...)
}

func (m *move) send(message string, users ...uint32) {
	m.t.Helper()
	got, err := m.filter(message, users...)
	require.NoError(m.t, err)
	require.Equal(m.t, users, got.Allowed)
}

// sends are those that the service knows of the user.
func (m *move) sends(user string) (messages []any) {
	m.t.Helper()
	for _, one := range m.get("/v1/users/" + user)["sends"].([]any) {
		messages = append(messages, one.(map[string]any)["message_id"])
	}
	return messages
}

// The last pass takes no other store than that of the passes before, and none that is older.
func TestTheLastPassTakesTheStoreOfThePasses(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	archive := filepath.Join(t.TempDir(), "old.tar")
	capperOutput(t, 0, "backup", "--url", m.url, "--to", archive)
	m.send("real", 300, 301)

	swapped := onServer(t, m.redis, "{push: 2, email: 1}", movedLimits)
	require.Contains(t, m.migrate(3, "--config", swapped), "channels.push: must stay 1, got 2")
	change := func(kind string, users ...int) {
		require.NoError(t, post(m.url+"/v1/sets/stop/members", map[string]any{kind: users}, new(any)))
	}
	change("add", 5, 6, 7)
	change("remove", 6)
	out := m.migrate(0)
	require.Contains(t, out, "2 users with 2 sends are in Redis")
	require.Contains(t, out, "3 changes that calls made to sets are in Redis too, and were read back; counts")

	older := filepath.Join(t.TempDir(), "older.db")
	capperOutput(t, 0, "restore", archive, "--to", older)
	require.Contains(t, m.migrate(1, "--finish", older),
		"holds a store that is older than the copy from the last migration pass")
	require.DirExists(t, older)
	other := newMove(t)
	other.send("else", 400)
	require.Contains(t, capperOutput(t, 1, m.args("--url", other.url)...),
		"must hold the store of the earlier migration passes")
	other.signal(syscall.SIGTERM)
	require.Contains(t, m.migrate(1, "--finish", other.store()),
		"must hold the store of the earlier migration passes")
	require.DirExists(t, other.store())

	m.send("late", 302)
	change("remove", 7)
	change("add", 8)
	changes := m.get("/v1/sets/stop/members")
	require.Contains(t, m.migrate(1, "--finish", m.store()), "another capper process has the store open")
	m.signal(syscall.SIGTERM)
	require.NoError(t, os.MkdirAll(m.store()+".migrated", 0o755))
	require.Contains(t, m.migrate(1, "--finish", m.store()), "must not exist")
	require.NoError(t, os.Remove(m.store()+".migrated"))
	require.Contains(t, m.migrate(0, "--finish", m.store()), "3 users with 3 sends are in Redis")
	require.Contains(t, m.migrate(1, "--finish", m.store()), "already ended")
	require.Contains(t, m.migrate(1), "already ended")

	m.process = serve(t, m.onRedis)
	require.Equal(t, []any{"real"}, m.sends("300"))
	require.Equal(t, []any{"late"}, m.sends("302"))
	require.Len(t, changes["changes"], 4)
	require.Equal(t, changes, m.get("/v1/sets/stop/members"), "changes of sets move too")
}

// killedPass moves users by a pass, and kills the last one. False: it was at its end before.
func (m *move) killedPass() bool {
	m.t.Helper()
	users := make([]uint32, 50_000)
	for i := range users {
		users[i] = uint32(1000 + i)
	}
	m.send("many", users...)
	require.Contains(m.t, m.migrate(0), "50000 users with 50000 sends are in Redis")
	m.send("late", 7, 8)
	m.signal(syscall.SIGTERM)
	pass := exec.Command("capper", m.args("--finish", m.store())...)
	require.NoError(m.t, pass.Start())
	noted := func(what string) bool {
		state, _ := os.ReadFile(filepath.Join(m.work, "state.json"))
		return bytes.Contains(state, []byte(what))
	}
	require.Eventually(m.t, func() bool { return noted(`"finishing"`) }, 2*time.Minute, time.Millisecond)
	require.NoError(m.t, pass.Process.Kill())
	return pass.Wait() != nil && !noted(`"finished"`)
}

// A last pass that is killed can be made again, as nobody decides on the store any more; one whose store was
// taken back into service cannot.
func TestALastPassThatIsKilledIsMadeAgain(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	for tries := 1; !m.killedPass(); tries++ {
		require.Less(t, tries, 5, "each pass came to its end")
		m = newMove(t)
	}
	old := launch(t, m.file)
	<-old.exited
	require.Contains(t, old.log.String(), "log.db", "who starts on the embedded store is refused")
	require.Contains(t, m.migrate(1), "the last pass of the migration has already started: no other pass can run "+
		"now")
	require.NoError(t, os.Rename(m.store()+".migrated", m.store()))
	require.Contains(t, m.migrate(1, "--finish", m.store()), "exists again")
	require.NoError(t, os.Rename(m.store(), m.store()+".migrated"))
	require.Contains(t, m.migrate(0, "--finish", m.store()), "50002 users with 50002 sends are in Redis: 50002 logs "+
		"were read back")
	m.process = serve(t, m.onRedis)
	require.Equal(t, []any{"late"}, m.sends("7"))
	require.Equal(t, []any{"many"}, m.sends("1000"))
}

// Nothing that somebody decided on the new store is taken away by a pass, and none begins on a store
// that is somebody's.
func TestAPassTakesNothingAway(t *testing.T) {
	t.Parallel()
	m := newMove(t)
	m.send("real", 300)
	beside := serve(t, m.onRedis)
	_, err := beside.filter("stray", 300)
	require.NoError(t, err)
	beside.signal(syscall.SIGTERM)
	require.Contains(t, m.migrate(1), "this Redis already contains a store")
	left, err := filepath.Glob(filepath.Join(m.work, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(m.work, "state.json")}, left,
		"no copy is kept of a pass that wrote nothing")

	empty := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	m.onRedis = onServer(t, empty, "{push: 1, email: 2}", movedLimits)
	m.migrate(0)
	beside = serve(t, m.onRedis)
	_, err = beside.filter("stray", 300)
	require.NoError(t, err)
	beside.signal(syscall.SIGTERM)
	m.send("more", 300)
	out := m.migrate(1)
	require.Contains(t, out, "user 300: a user's sends in Redis differ from the sends that the migration copied")
	require.Contains(t, out, "empty it and start again with another --work")
	m.signal(syscall.SIGTERM)
	m.process = serve(t, m.onRedis)
	require.Contains(t, m.sends("300"), "stray")
}
