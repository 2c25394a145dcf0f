package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
	"capper/internal/testcluster"
)

// sent is a send in a store.
type sent struct {
	at               time.Time
	message, channel string
}

// sends returns the sends of a user, oldest first.
func (w *world) sends(n int) (list []sent) {
	w.t.Helper()
	for _, one := range w.get("/v1/users/" + url.PathEscape(w.id(n)))["sends"].([]any) {
		s := one.(map[string]any)
		at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(s["at"]))
		require.NoError(w.t, err)
		list = append(list, sent{at, fmt.Sprint(s["message_id"]), fmt.Sprint(s["channel"])})
	}
	return list
}

// posts makes a call about users by number.
func (w *world) posts(path string, body map[string]any, users ...int) {
	w.t.Helper()
	list := []any{}
	for _, n := range users {
		list = append(list, w.given(n))
	}
	body["user_ids"] = list
	require.NoError(w.t, post(w.url+path, body, new(map[string]any)))
}

// exported is a row of an export of the audit.
type exported struct {
	UserID    uint32 `json:"user_id"`
	Time      time.Time
	TookMS    int    `json:"took_ms"`
	MessageID string `json:"message_id"`
	Channel   string
	Outcome   string
}

// export returns the rows of the audit's export.
func export(t *testing.T, config string) (rows []exported) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "past.ndjson")
	capperOutput(t, 0, "audit", "export", "--config", config, "--out", name)
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var row exported
		require.NoError(t, json.Unmarshal(lines.Bytes(), &row))
		rows = append(rows, row)
	}
	require.NoError(t, lines.Err())
	return rows
}

// standing joins an export with the table of the new ids, as docs/moving.md says: the sends that no later release gave
// back, each at the end of its earliest call.
func standing(rows []exported, id func(uint32) string) (table [][]string) {
	type send struct {
		user             uint32
		message, channel string
	}
	ends := map[send]time.Time{}
	for _, r := range rows { // in the order of time
		key := send{r.UserID, r.MessageID, r.Channel}
		switch _, known := ends[key]; {
		case r.Outcome == "released":
			maps.DeleteFunc(ends, func(s send, _ time.Time) bool {
				return s.user == r.UserID && s.message == r.MessageID && (s.channel == r.Channel || r.Channel == "")
			})
		case !known && (r.Outcome == "allowed" || r.Outcome == "replayed"):
			ends[key] = r.Time.Add(time.Duration(r.TookMS) * time.Millisecond)
		}
	}
	for key, end := range ends {
		table = append(table, []string{id(key.user), end.Format(time.RFC3339Nano), key.channel, key.message})
	}
	return table
}

// TestPastSendsMoveFromDenseIDsToOthers moves the sends of a deployment with dense ids to new deployments with other
// ids, as docs/moving.md describes. Each user has the same sends in all of them, so the limits hold as before.
func TestPastSendsMoveFromDenseIDsToOthers(t *testing.T) {
	t.Parallel()
	const users, limits = 80, "limits: {default: {daily: 3, weekly: 5}, segments: {vip: {daily: 5}}}\n"
	vip := []int{1, 2, 3, 5, 8, 13, 21, 34, 55}
	dense := worlds(t, ids.Dense)["embedded"]
	dense.build(map[string][]int{"vip": vip}, nil)
	dense.configure(limits + "audit: {to: " + filepath.Join(dense.dir, "audit") + "}\n")
	write(t, dense.file, strings.Replace(readFile(t, dense.file), "{push: 1}", "{push: 1, email: 2}", 1))
	dense.start()
	rng := rand.New(rand.NewPCG(26, 11))
	some := func(n int) (list []int) {
		for range n {
			list = append(list, rng.IntN(users))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	for range 150 {
		message, channel := fmt.Sprintf(`m"%d, é`, rng.IntN(8)), []string{"push", "email"}[rng.IntN(2)]
		switch roll := rng.IntN(10); {
		case roll < 7:
			dense.posts("/v1/filter", map[string]any{"message_id": message, "channel": channel}, some(20)...)
		case roll < 9:
			dense.posts("/v1/release", map[string]any{"message_id": message, "channel": channel}, some(8)...)
		default:
			dense.posts("/v1/release", map[string]any{"message_id": message}, some(4)...)
		}
	}
	const gone = 13
	request, err := http.NewRequest(http.MethodDelete, dense.url+"/v1/users/"+dense.id(gone), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	dense.posts("/v1/filter", map[string]any{"message_id": "afterwards", "channel": "push"}, gone, 14)
	before := map[int][]sent{}
	total := 0
	for n := range users {
		before[n] = dense.sends(n)
		total += len(before[n])
	}
	require.Greater(t, total, users, "the sends are many")
	dense.signal(syscall.SIGTERM)
	rows := export(t, dense.file)
	took := 0
	for _, r := range rows {
		took = max(took, r.TookMS)
	}

	for _, kind := range []ids.Kind{ids.UUID, ids.Text} {
		for store, w := range worlds(t, kind) {
			t.Run(fmt.Sprint(kind, " ", store), func(t *testing.T) {
				t.Parallel()
				w.t = t
				w.build(map[string][]int{"vip": vip}, nil)
				w.configure(limits)
				write(t, w.file, strings.Replace(readFile(t, w.file), "{push: 1}", "{push: 1, email: 2}", 1))
				w.start()
				table, err := os.Create(filepath.Join(w.dir, "sends.csv"))
				require.NoError(t, err)
				to := csv.NewWriter(table)
				require.NoError(t, to.Write([]string{"user_id", "at", "channel", "message_id"}))
				require.NoError(t, to.WriteAll(standing(rows, func(user uint32) string { return w.id(int(user)) })))
				require.NoError(t, table.Close())
				out := capperOutput(t, 0, "import", table.Name(), "--url", w.url, "--verify", "--batch", "50")
				require.Contains(t, out, fmt.Sprintf("verified       %d", total))
				for n := range users {
					after := w.sends(n)
					require.Len(t, after, len(before[n]), "user %d", n)
					rest := slices.Clone(before[n])
					for _, s := range after {
						i := slices.IndexFunc(rest, func(b sent) bool {
							return b.message == s.message && b.channel == s.channel
						})
						require.GreaterOrEqual(t, i, 0, "user %d never had %v", n, s)
						late := s.at.Sub(rest[i].at)
						longest := time.Duration(took) * time.Millisecond
						require.True(t, late >= 0 && late <= longest, "user %d: %v", n, late)
						rest = slices.Delete(rest, i, i+1)
					}
				}
				used, segment := w.used(5)
				require.Equal(t, []any{len(before[5]), "vip"}, []any{used, segment})
			})
		}
	}
}

// TestStoresOfEveryKindMigrate moves embedded stores of other ids to Redis in two passes, and checks that a
// configuration with other ids is refused by name before anything is written.
func TestStoresOfEveryKindMigrate(t *testing.T) {
	t.Parallel()
	for _, kind := range otherKinds {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			w := worlds(t, kind)["embedded"]
			w.t = t
			w.build(map[string][]int{"vip": {1, 2, 3}}, nil)
			rest := "limits: {default: {daily: 2}}\nsets: {stop: {live: true}}\nsuppress: {stop: all}\n"
			w.configure(rest)
			w.start()
			many := make([]int, 5000)
			for i := range many {
				many[i] = i
			}
			w.posts("/v1/filter", map[string]any{"message_id": "m1", "channel": "push"}, many...)
			require.NoError(t, post(w.url+"/v1/sets/stop/members", map[string]any{"add": []any{w.given(4)}}, new(any)))

			redis := *w
			redis.store = fmt.Sprintf("{kind: redis, redis: {addrs: [%s], replica_acks: 0}}",
				testcluster.Single(t, testcluster.Options{}).Addrs[0])
			redis.file = filepath.Join(w.dir, "redis.yaml")
			redis.configure(rest)
			migrate := func(status int, config string, more ...string) string {
				t.Helper()
				return capperOutput(t, status, append([]string{"migrate", "--url", w.url, "--config", config, "--work",
					filepath.Join(w.dir, "work")}, more...)...)
			}
			other := &world{t: t, kind: ids.Text, dir: t.TempDir(), store: redis.store}
			if kind == ids.Text {
				other.kind = ids.UUID
			}
			other.file = filepath.Join(other.dir, "capper.yaml")
			other.build(map[string][]int{"vip": {1}}, nil)
			other.configure(rest)
			require.Contains(t, migrate(3, other.file), "has ids of the kind "+other.kind.String()+
				", but the embedded store has ids of the kind "+kind.String()+": "+
				"a migration cannot change the kind or the hash key of ids")
			other.configure(rest + "ids: " + other.kind.String() + "\n")
			require.Contains(t, migrate(3, other.file),
				"ids: is "+other.kind.String()+", but the embedded store has ids of")
			stranger := &world{t: t, kind: kind, dir: t.TempDir(), store: redis.store}
			stranger.file = filepath.Join(stranger.dir, "capper.yaml")
			stranger.build(map[string][]int{"vip": {1}}, nil)
			stranger.configure(rest)
			require.Contains(t, migrate(3, stranger.file), "has another key for its ids (check ")
			left, err := filepath.Glob(filepath.Join(w.dir, "work", "*"))
			require.NoError(t, err)
			require.Equal(t, []string{filepath.Join(w.dir, "work", "state.json")}, left, "no copy is kept")

			out := migrate(0, redis.file)
			require.Contains(t, out, "5000 users with 5000 sends are in Redis: 5000 logs were read back")
			w.posts("/v1/filter", map[string]any{"message_id": "m2", "channel": "push"}, 7, 8)
			w.signal(syscall.SIGTERM)
			out = migrate(0, redis.file, "--finish", filepath.Join(w.dir, "log.db"))
			require.Contains(t, out, "2 logs were read back and are equal")
			require.Contains(t, out, "1 changes that calls made to sets are in Redis too")
			redis.start()
			require.Equal(t, map[int]string{7: "replayed", 9: "allowed"}, redis.outcomes("m2", 7, 9))
			require.Equal(t, map[int]string{4: "suppressed stop", 7: "daily ", 4999: "allowed"},
				redis.outcomes("m3", 4, 7, 4999))

			first := worlds(t, kind)["embedded"] // whose last pass is the only one
			first.t = t
			first.build(map[string][]int{"vip": {1}}, nil)
			first.configure(rest)
			first.start()
			first.posts("/v1/filter", map[string]any{"message_id": "m1", "channel": "push"}, 1, 2)
			first.signal(syscall.SIGTERM)
			target := *first
			target.store = fmt.Sprintf("{kind: redis, redis: {addrs: [%s], replica_acks: 0}}",
				testcluster.Single(t, testcluster.Options{}).Addrs[0])
			target.file = filepath.Join(first.dir, "redis.yaml")
			target.configure(rest)
			out = capperOutput(t, 0, "migrate", "--config", target.file, "--work", filepath.Join(first.dir, "work"),
				"--finish", filepath.Join(first.dir, "log.db"))
			require.Contains(t, out, "2 users with 2 sends are in Redis")
			target.start()
			require.Equal(t, map[int]string{1: "replayed", 2: "replayed"}, target.outcomes("m1", 1, 2))
		})
	}
}
