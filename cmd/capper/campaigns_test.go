package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// counted is a fleet whose campaigns are counted, with the keys of three teams.
type counted struct {
	t         *testing.T
	files     []string
	processes []*process
	mu        sync.Mutex
	urls      []string
	asked     atomic.Int64
	failed    atomic.Int64 // calls
}

// The limits between which reloads change.
const tight, wide = "{default: {daily: 80}, segments: {active: {daily: 30}}}",
	"{default: {daily: 100}, segments: {active: {daily: 40}}}"

// newCounted is instances over one store and one audit. store is the configuration of the store, by directory.
func newCounted(t *testing.T, instances int, store func(dir string) string) *counted {
	f := &counted{t: t, urls: make([]string, instances)}
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-150", "active=151-300")
	keys := ""
	for _, team := range []string{"", "growth", "crm"} {
		namespace, scopes := "", "filter, read, admin"
		if team != "" {
			namespace, scopes = "namespace: "+team+", ", "filter, read"
		}
		keys += fmt.Sprintf("    - {client: c%s, %sid: k%[1]s, sha256: %[3]x, scopes: [%[4]s]}\n", team, namespace,
			sha256.Sum256([]byte("k"+team+".secret")), scopes)
	}
	for i := range instances {
		file := filepath.Join(dir, fmt.Sprintf("capper-%d.yaml", i))
		write(t, file, fmt.Sprintf("server:\n  listen: 127.0.0.1:0\n  stop_delay: 0s\n  api_keys:\n%[2]s"+
			"segments: {source: %[1]s/segments, cache_dir: %[1]s/cache-%[3]d, refresh: 100ms}\nstore: %[4]s\n"+
			"channels: {push: 1, email: 2}\naudit: {to: %[1]s/audit, roll: 2s}\nlimits: %[5]s\n", dir, keys, i,
			store(dir), tight))
		f.files, f.processes = append(f.files, file), append(f.processes, nil)
		f.start(i)
	}
	return f
}

func (f *counted) start(i int) {
	f.processes[i] = serve(f.t, f.files[i])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.urls[i] = f.processes[i].url
}

// client is of a team, to an instance, and tries once.
func (f *counted) client(i int, team string) *client.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := client.New(client.Config{URL: f.urls[i], Key: "k" + team + ".secret", LeaveUnavailable: true,
		Attempts: 1})
	if err != nil {
		panic(err) // the URL was read from a log
	}
	return c
}

// reload changes the limits of an instance.
func (f *counted) reload(i int) {
	before, err := f.client(i, "").Status(f.t.Context())
	require.NoError(f.t, err)
	text, err := os.ReadFile(f.files[i])
	require.NoError(f.t, err)
	now := strings.Replace(string(text), tight, wide, 1)
	if now == string(text) {
		now = strings.Replace(string(text), wide, tight, 1)
	}
	write(f.t, f.files[i], now)
	testkit.Eventually(f.t, func() bool {
		after, err := f.client(i, "").Status(f.t.Context())
		return err == nil && after.ConfigVersion != before.ConfigVersion
	})
}

// sends is what a message on a channel has come to, by a caller who was told of every send.
type sends struct {
	held               map[uint32]bool
	recorded, released int64
}

// told is a message of a team, with what its caller knows.
type told struct {
	fleet    *counted
	random   *rand.Rand
	id, team string
	sends    map[string]*sends // by channel
}

// call calls an instance at random until one answers.
func (m *told) call(ctx context.Context, what func(c *client.Client) error) error {
	breath := time.NewTicker(5 * time.Millisecond) // calls during kills and reloads need not fill the machine
	defer breath.Stop()
	for {
		<-breath.C
		err := what(m.fleet.client(m.random.IntN(len(m.fleet.urls)), m.team))
		if err == nil {
			m.fleet.asked.Add(1)
			return nil
		}
		if client.HasCode(err, client.CodeNotFound) { // of a message that nobody has asked for yet
			return err
		}
		m.fleet.failed.Add(1)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", m.id, err)
		case <-breath.C: // the instance may be starting again
		}
	}
}

func (m *told) users(most int) []uint32 {
	users := make([]uint32, 1+m.random.IntN(most))
	first := m.random.Uint32N(300)
	for i := range users {
		users[i] = 1 + (first+uint32(i))%300
	}
	return users
}

// ask asks for users until each is decided.
func (m *told) ask(ctx context.Context, channel string, users []uint32) error {
	for len(users) > 0 {
		var got *client.FilterResult
		err := m.call(ctx, func(c *client.Client) (err error) {
			got, err = c.Filter(ctx, &client.FilterRequest{MessageID: m.id, Channel: channel, Users: users})
			return err
		})
		if err != nil {
			return err
		}
		for _, user := range got.Allowed {
			if m.sends[channel].held[user] && !slices.Contains(got.Replayed, user) {
				return fmt.Errorf("%s: user %d has the send, and got another one", m.id, user)
			}
		}
		m.sends[channel].note(got)
		users = got.Unavailable
	}
	return nil
}

// note notes who has the send: those replayed too, as an answer may have been lost.
func (s *sends) note(got *client.FilterResult) {
	for _, user := range got.Allowed {
		if !s.held[user] {
			s.held[user] = true
			s.recorded++
		}
	}
}

// askAtOnce asks for the users and for more of them at the same time, and then for what was not answered.
func (m *told) askAtOnce(ctx context.Context, channel string, users, more []uint32) error {
	var calls sync.WaitGroup
	answers := make([]*client.FilterResult, 4)
	for i := range answers {
		c, asked := m.fleet.client(i%len(m.fleet.urls), m.team), [][]uint32{users, more}[i/2]
		calls.Go(func() {
			if got, err := c.Filter(ctx, &client.FilterRequest{MessageID: m.id, Channel: channel,
				Users: asked}); err == nil {
				answers[i] = got
			}
		})
	}
	calls.Wait()
	for _, got := range answers {
		if got != nil {
			m.sends[channel].note(got)
		}
	}
	return m.ask(ctx, channel, append(users, more...))
}

// giveBack notes that the users, of nil all, have no such send any more.
func (m *told) giveBack(channel string, users []uint32) {
	for on, s := range m.sends {
		for user := range s.held {
			if (channel == "" || on == channel) && (users == nil || slices.Contains(users, user)) {
				delete(s.held, user)
				s.released++
			}
		}
	}
}

// release gives back the sends of users.
func (m *told) release(ctx context.Context, channel string, users []uint32) error {
	m.giveBack(channel, users)
	for len(users) > 0 {
		err := m.call(ctx, func(c *client.Client) error {
			got, err := c.Release(ctx, &client.ReleaseRequest{MessageID: m.id, Channel: channel, Users: users})
			if err == nil {
				users = got.Unavailable
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseAll gives back every send. What an instance that was killed has not written to the
// audit is found again when it is asked for again.
func (m *told) releaseAll(ctx context.Context, channel string) error {
	until := time.Now().Add(2 * time.Second)
	for {
		var got *api.ReleasedMessage
		err := m.call(ctx, func(c *client.Client) (err error) {
			got, err = c.ReleaseMessage(ctx, &client.MessageRelease{MessageID: m.id, Channel: channel}, nil)
			return err
		})
		if err != nil {
			return err
		}
		if got.Missing == 0 && got.Unavailable == 0 {
			m.giveBack(channel, nil)
			return nil
		}
		if time.Now().After(until) {
			return m.releaseLost(ctx, channel)
		}
	}
}

func (m *told) releaseLost(ctx context.Context, channel string) error {
	users := slices.Collect(func(yield func(uint32) bool) {
		for user := uint32(1); user <= 300 && yield(user); user++ {
		}
	})
	return m.release(ctx, channel, users)
}

// live is the life of the message.
func (m *told) live(ctx context.Context) error {
	for range 2 + m.random.IntN(5) {
		channel := []string{"", "push", "email"}[m.random.IntN(3)]
		users, err := m.users(150), error(nil)
		switch m.random.IntN(8) {
		case 0:
			err = m.releaseAll(ctx, channel)
		case 1, 2:
			err = m.release(ctx, channel, users)
		case 3, 4:
			err = m.askAtOnce(ctx, channel, users, m.users(150))
		default:
			if err = m.ask(ctx, channel, users); err == nil {
				err = m.ask(ctx, channel, users) // a retry
			}
		}
		if err != nil && !client.HasCode(err, client.CodeNotFound) {
			return err
		}
	}
	return nil
}

// campaigns runs messages, four at a time: as many at least, and until the rounds have ended.
func (f *counted) campaigns(n int, rounds func()) (all []*told) {
	ctx, cancel := context.WithTimeout(f.t.Context(), 6*time.Minute)
	defer cancel()
	seed := rand.Uint64()
	f.t.Logf("seed %d", seed)
	var mu sync.Mutex
	var callers sync.WaitGroup
	var ended atomic.Bool
	begin := func() *told {
		mu.Lock()
		defer mu.Unlock()
		i := len(all)
		if i >= n && ended.Load() {
			return nil
		}
		all = append(all, &told{
			fleet: f, random: rand.New(rand.NewPCG(seed, uint64(i))), id: fmt.Sprint("m-", i/2),
			team: []string{"", "growth", "crm"}[i%3],
			sends: map[string]*sends{"": {held: map[uint32]bool{}}, "push": {held: map[uint32]bool{}},
				"email": {held: map[uint32]bool{}}},
		})
		return all[i]
	}
	for range 4 {
		callers.Go(func() {
			for m := begin(); m != nil; m = begin() {
				assert.NoError(f.t, m.live(ctx))
			}
		})
	}
	rounds()
	ended.Store(true)
	callers.Wait()
	return all
}

// check asks every instance for the counts of the messages.
func (f *counted) check(all []*told) {
	recorded, released := int64(0), int64(0)
	for _, m := range all {
		for i := range f.urls {
			got, err := f.client(i, m.team).Message(f.t.Context(), m.id, "")
			if client.HasCode(err, client.CodeNotFound) {
				got, err = &api.MessageChannels{}, nil
			}
			require.NoError(f.t, err)
			want, found := map[string][2]int64{}, map[string][2]int64{}
			for channel, s := range m.sends {
				want[channel] = [2]int64{s.recorded, s.released}
				found[channel] = [2]int64{}
				recorded, released = recorded+s.recorded, released+s.released
			}
			for _, c := range got.Channels {
				found[c.Channel] = [2]int64{c.Allowed, c.Released}
			}
			require.True(f.t, maps.Equal(want, found), "%s of %q: counted %v, told %v", m.id, m.team, found, want)
		}
	}
	require.Positive(f.t, released)
	require.Greater(f.t, recorded, released)
	f.t.Logf("%d campaigns; %d calls, %d more failed; %d sends, %d of them given back", len(all), f.asked.Load(),
		f.failed.Load(), recorded/int64(len(f.urls)), released/int64(len(f.urls)))
}

// 40 campaigns on two instances, one of which is killed and reloaded, then the other one: what is counted
// as allowed and released is what callers were told, exactly.
func TestCampaignsCountWhatCallersWereTold(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	f := newCounted(t, 2, func(string) string {
		return fmt.Sprintf("{kind: redis, redis: {addrs: [%q], replica_acks: 0}}", redis)
	})
	f.check(f.campaigns(40, func() {
		for round := range 3 {
			f.reload(1 - round%2)
			f.processes[round%2].signal(syscall.SIGKILL)
			f.start(round % 2)
		}
	}))
	require.Positive(t, f.failed.Load(), "calls were under way at a kill")
}

// The same on the embedded store, which one instance has.
func TestCampaignsOfTheEmbeddedStoreCountWhatCallersWereTold(t *testing.T) {
	t.Parallel()
	f := newCounted(t, 1, func(dir string) string { return "{embedded: {path: " + dir + "/log.db}}" })
	f.check(f.campaigns(40, func() {
		for _, by := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
			f.reload(0)
			f.processes[0].signal(by)
			f.start(0)
		}
	}))
	require.Positive(t, f.failed.Load(), "calls were under way at a kill")
}
