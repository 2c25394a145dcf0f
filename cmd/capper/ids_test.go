package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/ids"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// world is a location of segments and a configuration for a service with ids of a kind.
type world struct {
	t     *testing.T
	kind  ids.Kind
	dir   string
	file  string
	store string
	rest  string
	*process
}

// worlds returns a world for each kind of store.
func worlds(t *testing.T, kind ids.Kind) map[string]*world {
	list := map[string]*world{}
	for _, name := range []string{"embedded", "redis"} {
		w := &world{t: t, kind: kind, dir: t.TempDir()}
		w.store = fmt.Sprintf("{embedded: {path: %s/log.db}}", w.dir)
		if name == "redis" {
			w.store = fmt.Sprintf("{kind: redis, redis: {addrs: [%s], replica_acks: 0}}",
				testcluster.Single(t, testcluster.Options{}).Addrs[0])
		}
		w.file = filepath.Join(w.dir, "capper.yaml")
		list[name] = w
	}
	return list
}

// configure writes the configuration: the common keys and then the rest.
func (w *world) configure(rest string) {
	w.t.Helper()
	w.rest = rest
	write(w.t, w.file, fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %[1]s/segments, cache_dir: %[1]s/cache, refresh: 100ms}
store: %[2]s
channels: {push: 1}
%[3]s`, w.dir, w.store, rest))
}

// id returns the id of the n-th user of a world.
func (w *world) id(n int) string {
	switch w.kind {
	case ids.UUID:
		return fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(n*2654435761), n)
	case ids.Uint64:
		return strconv.FormatUint(uint64(n)<<40|1<<63, 10)
	case ids.Text:
		return fmt.Sprintf("user %d@x.com/é", n)
	}
	return strconv.Itoa(n)
}

// given returns the id as JSON wants it in a request.
func (w *world) given(n int) any {
	if w.kind == ids.Dense {
		return n
	}
	return w.id(n)
}

// build publishes a generation of segments and sets of users by number, whose sets speak for this moment.
func (w *world) build(segments, sets map[string][]int) string {
	w.t.Helper()
	return w.buildAsOf(time.Now(), segments, sets)
}

func (w *world) buildAsOf(asOf time.Time, segments, sets map[string][]int) string {
	w.t.Helper()
	args := []string{"build", "--to", filepath.Join(w.dir, "segments"), "--ids", w.kind.String(), "--force", "--reason",
		"test"}
	for flag, list := range map[string]map[string][]int{"--segment": segments, "--set": sets} {
		for name, users := range list {
			var text strings.Builder
			for _, n := range users {
				fmt.Fprintln(&text, w.id(n))
			}
			file := filepath.Join(w.dir, name+".txt")
			require.NoError(w.t, os.WriteFile(file, []byte(text.String()), 0o600))
			args = append(args, flag, name+"="+file)
			if flag == "--set" {
				args = append(args, "--as-of", name+"="+asOf.Format(time.RFC3339Nano))
			}
		}
	}
	out, err := exec.Command(segmentbuild(w.t), args...).CombinedOutput()
	require.NoError(w.t, err, "%s", out)
	return live(w.t, filepath.Join(w.dir, "segments"))
}

// client returns a client of the service, whose calls about audiences have few users each.
func (w *world) client() *client.Client {
	w.t.Helper()
	c, err := client.New(client.Config{URL: w.url, BatchBitmap: 7})
	require.NoError(w.t, err)
	return c
}

// most is the number of users in a world.
const most = 60

// numbers returns the numbers of all users of the world by their ids, and by their images in 16 hexadecimal digits.
func (w *world) numbers() map[string]int {
	w.t.Helper()
	described, err := w.client().IDs(w.t.Context())
	require.NoError(w.t, err)
	var key ids.Key
	if w.kind != ids.Dense {
		key, err = ids.ParseKey(described.Key)
		require.NoError(w.t, err)
	}
	scheme, numbers := ids.New(w.kind, key), map[string]int{}
	for n := range most {
		image, err := scheme.Parse([]byte(w.id(n)))
		require.NoError(w.t, err)
		numbers[w.id(n)], numbers[fmt.Sprintf("%016x", image)] = n, n
	}
	return numbers
}

// number returns the number of the user with an id or an image.
func number(t *testing.T, numbers map[string]int, id string) int {
	t.Helper()
	n, known := numbers[id]
	require.True(t, known, "nobody has the id %q", id)
	return n
}

// members returns the members of a segment or set, ascending.
func (w *world) members(name string) (list []int) {
	w.t.Helper()
	names := w.numbers()
	if w.kind == ids.Dense {
		for page, err := range w.client().Members(w.t.Context(), name, "") {
			require.NoError(w.t, err)
			for _, id := range page.UserIDs {
				list = append(list, int(id))
			}
		}
	} else {
		for page, err := range w.client().MemberIDs(w.t.Context(), name, "") {
			require.NoError(w.t, err)
			for _, id := range page.UserIDs {
				list = append(list, number(w.t, names, id))
			}
		}
	}
	slices.Sort(list)
	return list
}

// changes returns the kind of the latest change of each user in a set.
func (w *world) changes(set string) map[int]string {
	w.t.Helper()
	names, changes := w.numbers(), map[int]string{}
	if w.kind == ids.Dense {
		for change, err := range w.client().SetMembers(w.t.Context(), set, time.Time{}) {
			require.NoError(w.t, err)
			changes[int(change.UserID)] = change.Change
		}
		return changes
	}
	for change, err := range w.client().SetMemberIDs(w.t.Context(), set, time.Time{}) {
		require.NoError(w.t, err)
		changes[number(w.t, names, change.UserID+change.Image)] = change.Change
	}
	return changes
}

// audience returns for each user of an expression what the calls about its parts answered, and the number that the
// service counts.
func (w *world) audience(message, expression string) (got map[int]string, counted uint64) {
	w.t.Helper()
	names, ctx := w.numbers(), w.t.Context()
	scheme := ids.New(w.kind, ids.Key{})
	got = map[int]string{}
	note := func(what string, dense *roaring.Bitmap, packed []byte, texts []string) {
		if dense != nil {
			for _, id := range dense.ToArray() {
				got[int(id)] = what
			}
		}
		for id := range slices.Chunk(packed, max(scheme.Width(), 1)) {
			got[number(w.t, names, string(scheme.Unpack(nil, id)))] = what
		}
		for _, id := range texts {
			got[number(w.t, names, id)] = what
		}
	}
	// A sample of all users is another request than none.
	of := &client.Audience{Expression: expression, Sample: &api.Sample{Percent: 100, Salt: "s"}}
	require.NoError(w.t, w.client().FilterAll(ctx, &client.FilterRequest{MessageID: message, Channel: "push",
		Audience: of}, func(_ *client.FilterRequest, r *client.FilterResult) error {
		note("allowed", r.AllowedBitmap, r.AllowedPacked, r.AllowedIDs)
		note("replayed", r.ReplayedBitmap, r.ReplayedPacked, r.ReplayedIDs)
		for limit, users := range r.DeniedBitmaps {
			note(limit, users, nil, nil)
		}
		for limit, users := range r.DeniedPacked {
			note(limit, nil, users, nil)
		}
		for _, d := range r.DeniedIDs {
			note(d.Limit, nil, nil, []string{d.UserID})
		}
		require.Zero(w.t, r.Summary.Unavailable)
		return nil
	}))
	count, err := w.client().AudienceCount(ctx, of)
	require.NoError(w.t, err)
	return got, count.Users
}

// filterCommand returns for each user what `capper filter --audience` wrote, and the output of `capper set members`.
func (w *world) filterCommand(message, expression string) (got map[int]string, changes map[int]string) {
	w.t.Helper()
	names, dir := w.numbers(), w.t.TempDir()
	run := func(args ...string) string {
		command := exec.Command("capper", append(args, "--url", w.url)...)
		command.Dir = dir
		var failed strings.Builder
		command.Stderr = &failed
		out, err := command.Output()
		require.NoError(w.t, err, "%s", failed.String())
		return string(out)
	}
	run("filter", "--audience", expression, "--message-id", message, "--channel", "push", "--batch", "5", "--allowed",
		"allowed.txt", "--denied-dir", "denied")
	files, err := filepath.Glob(filepath.Join(dir, "denied", "*.txt"))
	require.NoError(w.t, err)
	got = map[int]string{}
	for _, file := range append(files, filepath.Join(dir, "allowed.txt")) {
		for id := range strings.Lines(readFile(w.t, file)) {
			n := number(w.t, names, strings.TrimSuffix(id, "\n"))
			require.NotContains(w.t, got, n)
			got[n] = filepath.Base(file)
		}
	}
	changes = map[int]string{}
	for line := range strings.Lines(run("set", "members", "stop", "--json")) {
		var change struct {
			UserID        any `json:"user_id"`
			Image, Change string
		}
		require.NoError(w.t, json.Unmarshal([]byte(line), &change))
		if change.UserID != nil {
			change.Image = fmt.Sprint(change.UserID)
		}
		changes[number(w.t, names, change.Image)] = change.Change
	}
	return got, changes
}

func (w *world) start() {
	w.t.Helper()
	w.process = serve(w.t, w.file)
}

func (w *world) inUse(generation string) {
	w.t.Helper()
	testkit.Eventually(w.t, func() bool { return w.get("/v1/status")["generation"] == generation })
}

// outcomes returns for each user what a call answered: "allowed", "replayed", or the limit or set.
func (w *world) outcomes(message string, users ...int) (got map[int]string) {
	w.t.Helper()
	request := map[string]any{"message_id": message, "channel": "push"}
	names, list := map[string]int{}, []any{}
	for _, n := range users {
		names[w.id(n)] = n
		list = append(list, w.given(n))
	}
	request["user_ids"] = list
	var answer struct {
		Allowed, Replayed, Unavailable []any
		Denied                         []struct {
			UserID     any `json:"user_id"`
			Limit, Set string
		}
	}
	require.NoError(w.t, post(w.url+"/v1/filter", request, &answer))
	got = map[int]string{}
	note := func(id any, what string) {
		text, ok := id.(string)
		if !ok {
			raw, err := json.Marshal(id)
			require.NoError(w.t, err)
			text = string(raw)
		}
		n, known := names[text]
		require.True(w.t, known, "the answer names %v, whom nobody asked for", id)
		got[n] = what
	}
	for _, id := range answer.Allowed {
		note(id, "allowed")
	}
	for _, id := range answer.Replayed {
		note(id, "replayed")
	}
	for _, id := range answer.Unavailable {
		note(id, "unavailable")
	}
	for _, d := range answer.Denied {
		note(d.UserID, d.Limit+" "+d.Set)
	}
	return got
}

// used returns how many of the sends of a user count against the limit daily, and the user's segment.
func (w *world) used(n int) (used int, segment string) {
	w.t.Helper()
	answer := w.get("/v1/users/" + url.PathEscape(w.id(n)))
	for _, limit := range answer["limits"].([]any) {
		if l := limit.(map[string]any); l["name"] == "daily" {
			used = int(l["used"].(float64))
		}
	}
	segment, _ = answer["segment"].(string)
	return used, segment
}

var otherKinds = []ids.Kind{ids.Uint64, ids.UUID, ids.Text}

// A user who is in no file has limits from the first send on. They go on unbroken when builds bring the user into
// segments, move the user's number, or are rolled back.
func TestUsersKeepTheirSendsWhateverIsPublished(t *testing.T) {
	t.Parallel()
	for _, kind := range otherKinds {
		for store, w := range worlds(t, kind) {
			t.Run(fmt.Sprint(kind, " ", store), func(t *testing.T) {
				t.Parallel()
				w.t = t
				first := w.build(map[string][]int{"active": {10, 20, 30}}, nil)
				w.configure("limits: {default: {daily: 2}, segments: {vip: {daily: 4}, active: {daily: 1}}}\n")
				w.start()
				require.Equal(t, map[int]string{7: "allowed", 20: "allowed"}, w.outcomes("m1", 7, 20))
				require.Equal(t, map[int]string{7: "allowed", 20: "daily "}, w.outcomes("m2", 7, 20))
				require.Equal(t, map[int]string{7: "daily "}, w.outcomes("m3", 7))

				w.inUse(w.build(map[string][]int{"active": {10, 20, 30}, "vip": {7, 1, 2, 3}}, nil))
				used, segment := w.used(7)
				require.Equal(t, []any{2, "vip"}, []any{used, segment})
				require.Equal(t, map[int]string{7: "allowed"}, w.outcomes("m3", 7))
				w.inUse(w.build(map[string][]int{"active": {1, 2, 3, 4, 5, 10, 30}, "vip": {7, 20, 40, 50}}, nil))
				require.Equal(t, map[int]string{7: "allowed", 20: "allowed"}, w.outcomes("m4", 7, 20))
				require.Equal(t, map[int]string{7: "daily ", 20: "allowed"}, w.outcomes("m5", 7, 20))
				w.signal(syscall.SIGKILL)
				out, err := exec.Command(segmentbuild(t), "rollback", first, "--at",
					filepath.Join(w.dir, "segments")).CombinedOutput()
				require.NoError(t, err, "%s", out)
				w.start()
				w.inUse(first)
				used, segment = w.used(7)
				require.Equal(t, 4, used)
				require.NotEqual(t, "vip", segment)
				require.Equal(t, map[int]string{7: "replayed", 20: "replayed"}, w.outcomes("m4", 7, 20))
			})
		}
	}
}

// Services with ids that are mapped one to one give the same answers through calls, changes of sets, builds and kills.
func TestKindsOfIDsGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"embedded", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			var list []*world
			for _, kind := range ids.Kinds() {
				w := worlds(t, kind)[store]
				w.configure("limits: {default: {daily: 2}, segments: {vip: {daily: 3, weekly: 4}, active: " +
					"{daily: 1}}}\n" +
					"suppress: {opted-out: {may_lose: 100%}, stop: all}\nsets: {stop: {live: true}}\n")
				list = append(list, w)
			}
			rng := rand.New(rand.NewPCG(25, uint64(len(store))))
			some := func(n int) (users []int) {
				for range n {
					users = append(users, rng.IntN(most))
				}
				slices.Sort(users)
				return slices.Compact(users)
			}
			publish := func() {
				vip, active, out := some(20), some(20), some(6)
				active = slices.DeleteFunc(active, func(n int) bool { return slices.Contains(vip, n) })
				asOf := time.Now() // one time for all: an addition stands against a build of less than a minute later
				for _, w := range list {
					generation := w.buildAsOf(asOf, map[string][]int{"vip": vip, "active": active},
						map[string][]int{"opted-out": out})
					if w.process != nil {
						w.inUse(generation)
					}
				}
			}
			publish()
			for _, w := range list {
				w.start()
			}
			for step := range 100 {
				switch roll := rng.IntN(20); {
				case roll == 0:
					publish()
				case roll == 1:
					w := list[rng.IntN(len(list))]
					w.signal(syscall.SIGKILL)
					w.start()
				case roll < 6:
					field, users, set := []string{"add", "remove"}[rng.IntN(2)], some(3), []string{"stop",
						"opted-out"}[rng.IntN(2)]
					at := time.Now().Format(time.RFC3339Nano)
					for _, w := range list {
						given := []any{}
						for _, n := range users {
							given = append(given, w.given(n))
						}
						require.NoError(t, post(w.url+"/v1/sets/"+set+"/members",
							map[string]any{field: given, "at": at}, new(map[string]any)))
					}
				case roll < 8:
					sends, users := someSends(rng, some(8)), some(20)
					want, checked := list[0].imports(sends), list[0].checks("p1", users...)
					for _, w := range list[1:] {
						require.Equal(t, want, w.imports(sends), "step %d, %s", step, w.kind)
						require.Equal(t, checked, w.checks("p1", users...), "step %d, %s", step, w.kind)
					}
				case roll < 10:
					message, users := fmt.Sprint("m", rng.IntN(12)), some(4)
					for _, w := range list {
						given := []any{}
						for _, n := range users {
							given = append(given, w.given(n))
						}
						require.NoError(t, post(w.url+"/v1/release", map[string]any{"message_id": message,
							"channel":  "push",
							"user_ids": given}, new(map[string]any)))
					}
				case roll == 10:
					message, expression := fmt.Sprint("m", rng.IntN(12)), []string{"vip", "vip | active",
						"all - opted-out", "opted-out & (vip | active)"}[rng.IntN(4)]
					want, counted := list[0].audience(message, expression)
					for _, w := range list[1:] {
						got, n := w.audience(message, expression)
						require.Equal(t, want, got, "step %d, %s, %s", step, w.kind, expression)
						require.Equal(t, counted, n)
					}
				case roll == 11:
					for _, name := range []string{"vip", "active", "opted-out"} {
						want := list[0].members(name)
						for _, w := range list[1:] {
							require.Equal(t, want, w.members(name), "step %d, %s, %s", step, w.kind, name)
						}
					}
					for _, set := range []string{"stop", "opted-out"} {
						want := list[0].changes(set)
						for _, w := range list[1:] {
							require.Equal(t, want, w.changes(set), "step %d, %s, %s", step, w.kind, set)
						}
					}
				default:
					message, users := fmt.Sprint("m", rng.IntN(12)), some(12)
					want := list[0].outcomes(message, users...)
					for _, w := range list[1:] {
						require.Equal(t, want, w.outcomes(message, users...), "step %d, %s", step, w.kind)
					}
				}
			}
			wrote, changed := list[0].filterCommand("last", "all - vip")
			require.NotEmpty(t, wrote)
			for _, w := range list[1:] {
				got, changes := w.filterCommand("last", "all - vip")
				require.Equal(t, wrote, got, w.kind)
				require.Equal(t, changed, changes, w.kind)
			}
			for n := range most {
				want, segment := list[0].used(n)
				for _, w := range list[1:] {
					used, in := w.used(n)
					require.Equal(t, []any{want, segment}, []any{used, in}, "user %d, %s", n, w.kind)
				}
			}
		})
	}
}

// past is a send that another system made.
type past struct {
	user    int
	at      time.Time
	message string
}

// someSends returns past sends of users. No limit's window ends near a send, so that all services count the same.
func someSends(rng *rand.Rand, users []int) (sends []past) {
	ages := []time.Duration{time.Hour, 20 * time.Hour, 30 * time.Hour, 100 * time.Hour, 200 * time.Hour}
	for _, n := range users {
		age := ages[rng.IntN(len(ages))] + time.Duration(rng.IntN(1000))*time.Second
		sends = append(sends, past{n, time.Now().Add(-age), fmt.Sprint("p", rng.IntN(3))})
	}
	return sends
}

// imports imports sends, those of message p0 without a message id, and returns the summary.
func (w *world) imports(sends []past) any {
	w.t.Helper()
	list := []any{}
	for _, s := range sends {
		send := map[string]any{"user_id": w.given(s.user), "at": s.at}
		if s.message != "p0" {
			send["message_id"] = s.message
		}
		list = append(list, send)
	}
	var answer map[string]any
	require.NoError(w.t, post(w.url+"/v1/sends", map[string]any{"channel": "push", "sends": list}, &answer))
	require.Empty(w.t, answer["unavailable"])
	return answer["summary"]
}

// checks returns the users without a recorded send of a message, and the summary of the answer.
func (w *world) checks(message string, users ...int) []any {
	w.t.Helper()
	list, names := []any{}, map[string]int{}
	for _, n := range users {
		list, names[w.id(n)] = append(list, w.given(n)), n
	}
	var answer struct {
		Missing []struct {
			UserIDs []any `json:"user_ids"`
		}
		Unavailable []any
		Summary     map[string]any
	}
	require.NoError(w.t, post(w.url+"/v1/sends/check", map[string]any{"message_id": message, "channel": "push",
		"user_ids": list}, &answer))
	require.Empty(w.t, answer.Unavailable)
	missing := []int{}
	for _, place := range answer.Missing {
		for _, id := range place.UserIDs {
			n, known := names[fmt.Sprint(id)]
			require.True(w.t, known, "the answer names %v, whom nobody asked for", id)
			missing = append(missing, n)
		}
	}
	slices.Sort(missing)
	return []any{missing, answer.Summary}
}

// A location and a store of different kinds or keys are refused at a start, a location with another key at a refresh.
// Nothing is written, and the generation in use stays.
func TestOtherIDsAreRefused(t *testing.T) {
	t.Parallel()
	limits := "limits: {default: {daily: 1}}\n"
	for _, store := range []string{"embedded", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			w, dense := worlds(t, ids.UUID)[store], worlds(t, ids.Dense)[store]
			refused := func(w *world, says ...string) {
				t.Helper()
				p := launch(t, w.file)
				<-p.exited
				require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
				for _, text := range says {
					require.Contains(t, p.log.String(), text)
				}
			}
			place := filepath.Join(w.dir, "segments")
			generation := w.build(map[string][]int{"vip": {1, 2, 3}}, nil)
			w.configure(limits + "ids: text\n")
			refused(w, "ids: the configuration names the kind text, but the segments at",
				"have user ids of the kind uuid")
			w.configure(limits + "ids: uuid\n")
			w.start()
			require.Equal(t, map[int]string{1: "allowed"}, w.outcomes("m1", 1))
			dense.build(map[string][]int{"vip": {1, 2, 3}}, nil)
			dense.configure(limits)
			dense.start()
			require.Equal(t, map[int]string{1: "allowed"}, dense.outcomes("m1", 1))

			write(t, w.file, strings.Replace(readFile(t, w.file), "ids: uuid", "ids: text", 1))
			testkit.Eventually(t, func() bool {
				return strings.Contains(fmt.Sprint(w.get("/v1/status")["config"]),
					"ids: ")
			})
			write(t, w.file, strings.Replace(readFile(t, w.file), "ids: text", "ids: uuid", 1))

			key := filepath.Join(place, "ids.json")
			kept := readFile(t, key)
			require.NoError(t, os.Rename(key, key+".kept"))
			out, err := exec.Command(segmentbuild(t), "build", "--to", place, "--ids", "uuid", "--force", "--reason",
				"x",
				"--segment", "vip="+filepath.Join(w.dir, "vip.txt")).CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "ids.json")
			require.NoFileExists(t, key)

			other := &world{t: t, kind: ids.UUID, dir: t.TempDir()}
			other.build(map[string][]int{"vip": {1, 2, 3}}, nil)
			moved := filepath.Join(w.dir, "moved")
			require.NoError(t, os.Rename(place, moved))
			require.NoError(t, os.Rename(filepath.Join(other.dir, "segments"), place))
			testkit.Eventually(t, func() bool {
				refusal, _ := w.get("/v1/status")["segments"].(map[string]any)["refused"].(map[string]any)
				return strings.Contains(fmt.Sprint(refusal["reasons"]), "ids")
			})
			require.Equal(t, generation, w.get("/v1/status")["generation"])
			require.Equal(t, map[int]string{1: "daily ", 2: "allowed"}, w.outcomes("m2", 1, 2))
			w.signal(syscall.SIGTERM)
			require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "cache")))
			refused(w, "uuid", "check")

			require.NoError(t, os.RemoveAll(place))
			require.NoError(t, os.Rename(filepath.Join(dense.dir, "segments"), place))
			dense.signal(syscall.SIGTERM)
			w.configure(limits)
			refused(w, "dense", "uuid")
			require.NoError(t, os.Rename(moved, filepath.Join(dense.dir, "segments")))
			require.NoError(t, os.WriteFile(filepath.Join(dense.dir, "segments", "ids.json"), []byte(kept), 0o600))
			require.NoError(t, os.RemoveAll(filepath.Join(dense.dir, "cache")))
			refused(dense, "dense", "uuid")

			require.NoError(t, os.RemoveAll(place))
			require.NoError(t, os.Rename(filepath.Join(dense.dir, "segments"), place))
			w.start()
			require.Equal(t, map[int]string{1: "replayed", 2: "daily "}, w.outcomes("m1", 1, 2), "nothing was lost")
			require.Equal(t, http.StatusOK, status(t, w.url+"/readyz"))
		})
	}
}

// status returns the status of a GET.
func status(t *testing.T, url string) int {
	t.Helper()
	response, err := (&http.Client{Timeout: time.Minute}).Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}
