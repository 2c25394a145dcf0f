//go:build storms

package drills

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// The users who are asked for, how often each may be sent to, and how many a call names.
const (
	users   = 20_000
	most    = 12
	ofACall = 200
)

// load is callers who ask for random users all the time, and what they were told. It knows of capper only
// what callers are promised.
type load struct {
	testing.TB
	url  string
	stop chan struct{}
	wait sync.WaitGroup

	mu       sync.Mutex
	began    time.Time
	calls    int
	allowed  map[uint32][]string // messages by user
	maybe    map[uint32]int      // sends that a lost answer or an unavailable user may have recorded
	failed   []string            // calls without an answer, and answers without a decision
	lastFail time.Time
}

// newLoad begins with four callers.
func newLoad(t testing.TB, url string) *load {
	l := &load{TB: t, url: url, stop: make(chan struct{}), began: time.Now(), allowed: map[uint32][]string{},
		maybe: map[uint32]int{}}
	for caller := range 4 {
		l.wait.Go(func() { l.call(caller) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) call(caller int) {
	random := rand.New(rand.NewPCG(uint64(caller), 7))
	pace := time.NewTicker(60 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		case <-pace.C:
			l.ask(fmt.Sprintf("m-%d-%d", caller, n), pick(random))
		}
	}
}

func pick(random *rand.Rand) []uint32 {
	picked := make([]uint32, ofACall)
	for i := range picked {
		picked[i] = uint32(random.IntN(users))
	}
	slices.Sort(picked)
	return slices.Compact(picked)
}

// decided is a filter answer.
type decided struct {
	Allowed     []uint32 `json:"allowed"`
	Unavailable []uint32 `json:"unavailable"`
	Summary     struct{ Requested, Allowed, Unavailable int }
}

// ask asks once: what callers would repeat is a failure here.
func (l *load) ask(message string, asked []uint32) {
	var got decided
	err := l.post("/v1/filter", map[string]any{"message_id": message, "channel": "push", "user_ids": asked}, &got)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	undecided := got.Unavailable
	if err != nil {
		undecided = asked
		l.fail("%s: %v", message, err)
	} else if len(undecided) > 0 {
		l.fail("%s: %d of %d users unavailable", message, len(undecided), len(asked))
	}
	for _, user := range undecided {
		l.maybe[user]++
	}
	for _, user := range got.Allowed {
		l.allowed[user] = append(l.allowed[user], message)
	}
}

func (l *load) fail(format string, args ...any) {
	l.lastFail = time.Now()
	l.failed = append(l.failed, fmt.Sprintf("after %v: ", time.Since(l.began).Round(time.Millisecond))+
		fmt.Sprintf(format, args...))
}

func (l *load) post(path string, request, got any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := http.Post(l.url+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	return read(response, got)
}

func read(response *http.Response, got any) error {
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return json.Unmarshal(text, got)
}

// goOn waits until so many more calls were answered.
func (l *load) goOn(calls int) {
	l.Helper()
	until := l.count() + calls
	testkit.Eventually(l, func() bool { return l.count() >= until })
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// failures are those so far; they begin anew.
func (l *load) failures() (failed []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed, l.failed = l.failed, nil
	return failed
}

// quietFor waits until no call has failed for so long.
func (l *load) quietFor(d time.Duration, patience time.Duration) {
	l.Helper()
	require.Eventually(l, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Since(l.lastFail) > d
	}, patience, 10*time.Millisecond)
}

func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.wait.Wait()
}

// settle ends the load and holds the logs to what was answered: each send that was allowed is in its user's
// log once, nobody has more than the limit, and nothing is there that nobody asked for.
func (l *load) settle() {
	l.Helper()
	l.end()
	require.Greater(l, len(l.allowed), users/2, "the load reached most users")
	sends := 0
	for user := uint32(0); user < users; user += 7 {
		recorded := l.log(user)
		require.LessOrEqual(l, len(recorded), most, "user %d: more sends than the limit", user)
		for _, message := range l.allowed[user] {
			switch strings.Count(strings.Join(recorded, " ")+" ", message+" ") {
			case 1:
			case 0: // its text may have been lost with a master, which the send itself must not
				require.True(l, slices.Contains(recorded, "") && l.has(user, message),
					"user %d was allowed %s, the log has %v", user, message, recorded)
			default:
				require.Fail(l, "twice", "user %d was allowed %s once, the log has %v", user, message, recorded)
			}
		}
		require.LessOrEqual(l, len(recorded)-len(l.allowed[user]), l.maybe[user],
			"user %d: sends that nobody was told of: %v", user, recorded)
		sends += len(recorded)
	}
	l.Logf("%d calls, %d sends of a seventh of the users read back", l.calls, sends)
}

// has is whether the send is there: who asks for it again is told so.
func (l *load) has(user uint32, message string) bool {
	l.Helper()
	var got struct{ Replayed []uint32 }
	require.NoError(l, l.post("/v1/filter", map[string]any{"message_id": message, "channel": "push",
		"user_ids": []uint32{user}}, &got))
	return slices.Contains(got.Replayed, user)
}

// log is the messages of the user's sends, "" where the text was not kept.
func (l *load) log(user uint32) (messages []string) {
	l.Helper()
	var got struct {
		Sends []struct {
			MessageID string `json:"message_id"`
		} `json:"sends"`
	}
	response, err := http.Get(fmt.Sprintf("%s/v1/users/%d", l.url, user))
	require.NoError(l, err)
	require.NoError(l, read(response, &got))
	for _, send := range got.Sends {
		messages = append(messages, send.MessageID)
	}
	return messages
}
