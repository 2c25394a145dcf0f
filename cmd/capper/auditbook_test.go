package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/testkit"
)

// book notes the answers of a service about users by number, and knows nothing of the audit.
type book struct {
	*world
	place  string
	named  int // users from this one on are in no file
	out    []int
	vip    []int
	lines  []string
	calls  []bookedCall
	images map[string]int // users by "image:…", as capper ids names them
}

// bookedCall is the answer of one call.
type bookedCall struct {
	kind, message string
	users         map[int]string
}

// bookUsers is the number of users in a book.
const bookUsers = 60

func newBook(w *world) *book {
	b := &book{world: w, place: filepath.Join(w.dir, "audit"), named: 40, images: map[string]int{}}
	var active []int
	for n := range b.named {
		switch n % 8 {
		case 0:
			b.out = append(b.out, n)
		case 1, 2:
			b.vip = append(b.vip, n)
		default:
			active = append(active, n)
		}
	}
	w.build(map[string][]int{"vip": b.vip, "active": active}, map[string][]int{"opted-out": b.out, "stop": {1}})
	w.configure("limits: {default: {daily: 2}, segments: {vip: {daily: 3}}}\n" +
		"suppress: {opted-out: {may_lose: 100%}}\nsets: {stop: {live: true}}\naudit: {to: " + b.place + ", roll: 1s}\n")
	w.start()
	b.learnImages()
	return b
}

// learnImages asks capper ids for the images of a company's own table of users.
func (b *book) learnImages() {
	var table strings.Builder
	for n := range bookUsers {
		fmt.Fprintln(&table, b.id(n))
	}
	command := exec.Command("capper", "ids", "--url", b.url)
	command.Stdin = strings.NewReader(table.String())
	out, err := command.Output()
	require.NoError(b.t, err)
	rows := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(b.t, rows, bookUsers)
	for n, row := range rows {
		_, image, _ := strings.Cut(row, "\t")
		b.images["image:"+image] = n
	}
	require.Len(b.t, b.images, bookUsers)
}

// note adds the answer of a call to the book.
func (b *book) note(kind, message string, users map[int]string) {
	b.calls = append(b.calls, bookedCall{kind, message, users})
	for n, what := range users {
		outcome, limit, set := what, "", ""
		if first, rest, denied := strings.Cut(what, " "); denied {
			outcome, limit, set = "denied", first, rest
		}
		if kind == "set_change" {
			message, set = "", "stop"
		}
		b.lines = append(b.lines, line(n, kind, message, outcome, limit, set))
	}
}

func line(n int, kind, message, outcome, limit, set string) string {
	return fmt.Sprintf("%d %s %q %s %q %q", n, kind, message, outcome, limit, set)
}

func some(r *rand.Rand, n int) (users []int) {
	for range n {
		users = append(users, r.IntN(bookUsers))
	}
	slices.Sort(users)
	return slices.Compact(users)
}

// call makes a random call.
func (b *book) call(r *rand.Rand) {
	message := fmt.Sprint("m", r.IntN(9))
	switch r.IntN(8) {
	case 0:
		users, given := some(r, 5), []any{}
		for _, n := range users {
			given = append(given, b.given(n))
		}
		field := []string{"add", "remove"}[r.IntN(2)]
		require.NoError(b.t, post(b.url+"/v1/sets/stop/members", map[string]any{field: given}, new(map[string]any)))
		changed := map[int]string{}
		for _, n := range users {
			changed[n] = map[string]string{"add": "added", "remove": "removed"}[field]
		}
		b.note("set_change", "", changed)
	case 1, 2:
		users := map[int]string{}
		given := []any{}
		for _, n := range some(r, 8) {
			users[n], given = "absent", append(given, b.given(n))
		}
		var answer struct{ Released []string }
		require.NoError(b.t, post(b.url+"/v1/release", map[string]any{"message_id": message, "channel": "push",
			"user_ids": given}, &answer))
		for n := range users {
			if slices.Contains(answer.Released, b.id(n)) {
				users[n] = "released"
			}
		}
		b.note("release", message, users)
	default:
		b.note("filter", message, b.outcomes(message, some(r, 1+r.IntN(40))...))
	}
}

// numberOf is the user whom an answer or an export names. Users in no file have no name, unless the ids are uint64.
func (b *book) numberOf(name string, named bool) int {
	if n, known := b.images[name]; known {
		require.False(b.t, named && (n < b.named || b.kind == ids.Uint64), "%s has a name: %s", name, b.id(n))
		return n
	}
	for n := range bookUsers {
		if b.id(n) == name {
			require.True(b.t, named && (n < b.named || b.kind == ids.Uint64), "%s has no name", name)
			return n
		}
	}
	require.Fail(b.t, "nobody has this name", name)
	return 0
}

// bookRow is a row of an export.
type bookRow struct {
	UserID    string `json:"user_id" parquet:"user_id"`
	Kind      string `json:"kind" parquet:"kind"`
	MessageID string `json:"message_id" parquet:"message_id"`
	Outcome   string `json:"outcome" parquet:"outcome"`
	Limit     string `json:"limit" parquet:"limit"`
	Set       string `json:"set" parquet:"set"`
}

// export returns the rows of an export in the form of the book.
func (b *book) export(format string, named bool, arguments ...string) (lines []string) {
	b.t.Helper()
	out, _ := output(b.t, 0, append([]string{"audit", "export", "--format", format}, arguments...)...)
	var rows []bookRow
	if format == "parquet" {
		var err error
		rows, err = parquet.Read[bookRow](bytes.NewReader([]byte(out)), int64(len(out)))
		require.NoError(b.t, err)
	} else {
		for text := range strings.Lines(out) {
			var row bookRow
			require.NoError(b.t, json.Unmarshal([]byte(text), &row))
			rows = append(rows, row)
		}
	}
	for _, r := range rows {
		lines = append(lines, line(b.numberOf(r.UserID, named), r.Kind, r.MessageID, r.Outcome, r.Limit, r.Set))
	}
	slices.Sort(lines)
	return lines
}

// requireExports compares the exports of both formats with the book, with names and without.
func (b *book) requireExports() {
	b.t.Helper()
	want := slices.Sorted(slices.Values(b.lines))
	for _, format := range []string{"ndjson", "parquet"} {
		require.Equal(b.t, want, b.export(format, true, "--config", b.file), format)
		require.Equal(b.t, want, b.export(format, false, "--audit", b.place), format)
	}
}

// holders returns the users with a send of the message.
func (b *book) holders(message string) (users []int) {
	holds := map[int]bool{}
	for _, c := range b.calls {
		for n, what := range c.users {
			if c.message == message {
				holds[n] = what == "allowed" || what == "replayed" || holds[n] && what != "released"
			}
		}
	}
	for n, yes := range holds {
		if yes {
			users = append(users, n)
		}
	}
	slices.Sort(users)
	return users
}

// releases returns the number of calls that released the send, or tried to. A send that begins in the millisecond in
// which such a call ends is in doubt, and verify leaves it out.
func (b *book) releases(send string) (n int) {
	for _, c := range b.calls {
		for user := range c.users {
			if c.kind == "release" && fmt.Sprint(c.message, " ", user) == send {
				n++
			}
		}
	}
	return n
}

// counted are the sends, replays and denials of the book, as recorded and as a plain model decides them under limits
// of which max returns a user's.
func (b *book) counted(max func(n int) int) (before, after map[string]float64) {
	before, after = map[string]float64{}, map[string]float64{}
	log := map[int]map[string]bool{}
	for _, c := range b.calls {
		for n, what := range c.users {
			if log[n] == nil {
				log[n] = map[string]bool{}
			}
			switch {
			case c.kind == "release":
				delete(log[n], c.message)
				continue
			case c.kind != "filter":
				continue
			case what == "allowed":
				before["sends"]++
			case what == "replayed":
				before["replayed"]++
			default:
				before["denied"]++
			}
			switch {
			case slices.Contains(b.out, n):
				after["denied"]++
			case log[n][c.message]:
				after["replayed"]++
			case len(log[n]) < max(n):
				log[n][c.message] = true
				after["sends"]++
			default:
				after["denied"]++
			}
		}
	}
	return before, after
}

// requireWhatIf compares a replay under other limits with the count of the book.
func (b *book) requireWhatIf() {
	b.t.Helper()
	limits := filepath.Join(b.dir, "limits.yaml")
	write(b.t, limits, "channels: {push: 1}\nlimits: {default: {daily: 1}, segments: {vip: {daily: 5}}}\n"+
		"suppress: {opted-out: {may_lose: 100%}}\n")
	before, after := b.counted(func(n int) int {
		if slices.Contains(b.vip, n) {
			return 5
		}
		return 1
	})
	out, _ := output(b.t, 0, "whatif", "--limits", limits, "--config", b.file, "--json")
	var result struct {
		Total struct{ Before, After map[string]float64 }
		Users struct{ Asked int }
	}
	require.NoError(b.t, json.Unmarshal([]byte(out), &result))
	for name, n := range before {
		require.Equal(b.t, n, result.Total.Before[name], name)
		require.Equal(b.t, after[name], result.Total.After[name], name)
	}
	require.NotEqual(b.t, before, after)
	require.Equal(b.t, bookUsers, result.Users.Asked)
}

// verifyStore compares the audit with the running service, and returns the sends that the store lacks.
func (b *book) verifyStore(status int) (missing []string, file string) {
	b.t.Helper()
	b.settled()
	file = filepath.Join(b.dir, "missing.csv")
	require.NoError(b.t, os.RemoveAll(file))
	out, _ := output(b.t, status, "audit", "verify", "--config", b.file, "--store", "--url", b.url, "--settle", "1ms",
		"--missing", file, "--users-per-second", "100000")
	raw, err := csv.NewReader(strings.NewReader(readFile(b.t, file))).ReadAll()
	require.NoError(b.t, err)
	require.Equal(b.t, []string{"user_id", "at", "channel", "message_id", "namespace", "image"}, raw[0])
	for _, row := range raw[1:] {
		n := b.images["image:"+row[5]]
		require.Equal(b.t, n, b.numberOf(row[0], true))
		missing = append(missing, fmt.Sprint(row[3], " ", n))
	}
	require.Contains(b.t, out, fmt.Sprintf(" %d missing", len(missing)))
	slices.Sort(missing)
	return missing, file
}

// requireLostSends lets the service forget all sends, and requires that verify finds each of them and that an import
// brings them back, also those of users without a name.
func (b *book) requireLostSends() {
	b.t.Helper()
	var all []string
	nameless := 0
	for i := range 9 {
		message := fmt.Sprint("m", i)
		for _, n := range b.holders(message) {
			all = append(all, fmt.Sprint(message, " ", n))
			if n >= b.named && b.kind != ids.Uint64 {
				nameless++
			}
		}
	}
	slices.Sort(all)
	require.NotEmpty(b.t, all)
	require.Equal(b.t, b.kind != ids.Uint64, nameless > 0)
	before := b.store
	b.store = fmt.Sprintf("{embedded: {path: %s/empty.db}}", b.dir)
	b.configure(b.rest)
	b.start()
	missing, file := b.verifyStore(8)
	inDoubt := func(send string) bool { return !slices.Contains(missing, send) && b.releases(send) > 0 }
	require.Greater(b.t, 10*len(missing), 9*len(all))
	all = slices.DeleteFunc(all, inDoubt)
	require.Equal(b.t, all, missing)
	out, _ := output(b.t, 0, "import", file, "--url", b.url, "--verify")
	require.Regexp(b.t, fmt.Sprintf(`added +%d\b`, len(all)), out)
	missing, _ = b.verifyStore(0)
	require.Empty(b.t, missing)
	b.signal(syscall.SIGTERM)
	b.store = before
	b.configure(b.rest)
}

// requireSeededFaults changes the audit and requires that verify finds each fault.
func (b *book) requireSeededFaults() {
	b.t.Helper()
	out, _ := output(b.t, 0, "audit", "verify", "--config", b.file)
	require.Contains(b.t, out, "0 over-sends; 0 other findings")
	require.NotContains(b.t, out, "note: ")
	files, err := filepath.Glob(b.place + "/records/*/*")
	require.NoError(b.t, err)
	raw := readFile(b.t, files[0])
	bent := []byte(raw)
	bent[len(bent)/2] ^= 4
	require.NoError(b.t, os.WriteFile(files[0], bent, 0o600))
	out, _ = output(b.t, 8, "audit", "verify", "--config", b.file)
	require.Contains(b.t, out, "damage: records/")
	_, _ = output(b.t, 3, "audit", "export", "--config", b.file)
	require.NoError(b.t, os.Remove(files[0]))
	out, _ = output(b.t, 8, "audit", "verify", "--config", b.file)
	require.Contains(b.t, out, "missing: records/")
	require.NoError(b.t, os.WriteFile(files[0], []byte(raw), 0o600))
	_, _ = output(b.t, 0, "audit", "verify", "--config", b.file)
}

// requireOverSend adds sends of a user in a file and of one in no file, beyond the limits, and requires that verify
// names both users.
func (b *book) requireOverSend() {
	b.t.Helper()
	at := objects.NewDirectory(b.place)
	of, err := archive.ReadIDs(b.t.Context(), at)
	require.NoError(b.t, err)
	w := audittest.NewWriter(at, 99)
	w.IDs = of
	known := b.calls[0]
	require.Equal(b.t, "filter", known.kind)
	var like *audit.Record
	for r, err := range archive.New(at, nil).Of(of).Records(b.t.Context(), archive.Query{
		Kinds: []audit.Kind{audit.Filter}}) {
		require.NoError(b.t, err)
		like = r
		break
	}
	var users []capping.UserID
	for image, n := range b.images {
		if n == 3 || n == bookUsers-1 {
			user := capping.UserID(0)
			_, err := fmt.Sscanf(image, "image:%x", (*uint64)(&user))
			require.NoError(b.t, err)
			users = append(users, user)
		}
	}
	slices.Sort(users)
	var frames []audit.Frame
	for i := range 3 {
		r := *like
		r.At += capping.Instant(24*time.Hour.Milliseconds()*2 + int64(i)*10_000)
		r.Message.ID = fmt.Sprint("over-", i)
		r.Groups = []audit.Group{{Outcome: audit.Allowed, Images: users}}
		frames = append(frames, audit.Frame{Record: &r})
	}
	w.Roll(b.t, frames...)
	out, _ := output(b.t, 8, "audit", "verify", "--config", b.file)
	require.Contains(b.t, out, "2 over-sends; 0 other findings")
	require.Contains(b.t, out, "over_send: user "+b.id(3)+" received more than 2 sends within 24h")
	stranger := b.id(bookUsers - 1)
	if b.kind != ids.Uint64 {
		for image, n := range b.images {
			if n == bookUsers-1 {
				stranger = image
			}
		}
	}
	require.Contains(b.t, out, "over_send: user "+stranger+" received more than 2 sends within 24h")
	out, _ = output(b.t, 8, "audit", "verify", "--config", b.file, "--json")
	var report struct {
		Findings []struct {
			UserID string `json:"user_id"`
		}
	}
	require.NoError(b.t, json.Unmarshal([]byte(out), &report))
	require.ElementsMatch(b.t, []string{b.id(3), stranger}, []string{report.Findings[0].UserID,
		report.Findings[1].UserID})
}

// settled waits until all that was decided is on the disk.
func (b *book) settled() {
	b.t.Helper()
	asked := time.Now()
	testkit.Eventually(b.t, func() bool { return b.flushed().After(asked) })
}

// requireDecisions compares the answers about the users of each message with the book.
func (b *book) requireDecisions() {
	b.t.Helper()
	b.settled()
	for i := range 9 {
		message := fmt.Sprint("m", i)
		last := map[int]string{}
		for _, c := range b.calls {
			for n, what := range c.users {
				if c.message == message && what != "absent" {
					last[n] = strings.TrimSpace(strings.Replace(what, "replayed", "allowed", 1))
				}
			}
		}
		var got struct {
			Allowed, Released, Unavailable []string
			Denied                         map[string][]string
		}
		status, text := b.send("GET", "/v1/decisions?channel=push&message_id="+message, "")
		require.Equal(b.t, http.StatusOK, status, text)
		require.NoError(b.t, json.Unmarshal([]byte(text), &got))
		found := map[int]string{}
		for _, name := range got.Allowed {
			found[b.numberOf(name, true)] = "allowed"
		}
		for _, name := range got.Released {
			found[b.numberOf(name, true)] = "released"
		}
		for limit, names := range got.Denied {
			for _, name := range names {
				if found[b.numberOf(name, true)] = limit; limit == "suppressed" {
					found[b.numberOf(name, true)] = "suppressed opted-out"
				}
			}
		}
		require.Empty(b.t, got.Unavailable)
		require.Equal(b.t, last, found, message)
	}
}

// releaseAll gives back all sends of a message by the command.
func (b *book) releaseAll(message string) {
	b.t.Helper()
	b.settled()
	holders := b.holders(message)
	require.NotEmpty(b.t, holders)
	out, _ := output(b.t, 0, "release", "--all", "--message-id", message, "--url", b.url, "--json")
	var given struct{ Found, Released int }
	require.NoError(b.t, json.Unmarshal([]byte(out), &given))
	require.Equal(b.t, [2]int{len(holders), len(holders)}, [2]int{given.Found, given.Released})
	users := map[int]string{}
	for _, n := range holders {
		users[n] = "released"
	}
	b.note("release", message, users)
}

// erase erases a user, who leaves the book.
func (b *book) erase(n int) {
	b.t.Helper()
	status, text := b.send("DELETE", "/v1/users/"+url.PathEscape(b.id(n)), "")
	require.Equal(b.t, http.StatusNoContent, status, text)
	b.lines = slices.DeleteFunc(b.lines, func(line string) bool { return strings.HasPrefix(line, fmt.Sprint(n, " ")) })
}

// bookStores names the stores of the book for each kind of ids. The audit knows no store, so not every pair is tried.
var bookStores = map[ids.Kind][]string{ids.UUID: {"embedded", "redis"}, ids.Uint64: {"embedded"}, ids.Text: {"redis"}}

// TestTheAuditOfEveryKindIsTheBook makes random calls to services with ids of every kind on both stores, and compares
// the audit with a book of the answers: exports, decisions, what-if, releases of messages, erasures, and verify with
// seeded faults.
func TestTheAuditOfEveryKindIsTheBook(t *testing.T) {
	t.Parallel()
	for _, kind := range otherKinds {
		stores := worlds(t, kind)
		for _, store := range bookStores[kind] {
			t.Run(fmt.Sprint(kind, " ", store), func(t *testing.T) {
				t.Parallel()
				stores[store].t = t
				b := newBook(stores[store])
				r := rand.New(rand.NewPCG(uint64(kind), uint64(len(store))))
				b.note("filter", "m0", b.outcomes("m0", slices.Collect(maps.Values(b.images))...))
				for n := range 120 {
					if b.call(r); n == 60 {
						b.signal(syscall.SIGTERM)
						b.start()
					}
				}
				b.requireDecisions()
				b.releaseAll("m0")
				b.settled()
				b.requireExports()
				missing, _ := b.verifyStore(0)
				require.Empty(t, missing)
				b.signal(syscall.SIGTERM)
				b.requireExports()
				b.requireWhatIf()
				if store == "embedded" { // the clock tolerance of Redis leaves sends near a release in doubt
					b.requireLostSends()
				}
				b.requireSeededFaults()

				b.start()
				b.erase(3)
				b.erase(bookUsers - 2) // in no file
				b.signal(syscall.SIGTERM)
				b.requireExports()
				out, _ := output(t, 0, "audit", "compact", "--config", b.file)
				require.Regexp(t, `[1-9]\d* entries of erased users removed`, out)
				b.requireExports()
				_, _ = output(t, 0, "audit", "verify", "--config", b.file)
				b.requireOverSend()
			})
		}
	}
}
