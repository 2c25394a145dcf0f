package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/parallel"
	"capper/internal/share"
)

// A Store holds the functions and settings with which package verify compares the store with the audit. Ask and Settle
// are required.
type Store struct {
	// The function Ask asks the store which users have a recorded send. Several goroutines call Ask at the same time.
	Ask func(ctx context.Context, q *Question) (*Answer, error)
	// Settle waits until the audit contains every release and erasure that ended before the call of Settle.
	Settle func(ctx context.Context) error
	// Released returns the store's number of released sends of a message, and the number of channels of the message. If
	// the store has no count for the message, counted is false, and channels is 0. If the count is only a lower bound,
	// counted is false, too. Released is nil if the store cannot count.
	Released func(ctx context.Context, message capping.Message) (sends int64, channels int, counted bool, err error)
	Sample   *share.Share    // share of the users; nil: all users
	Now      capping.Instant // time when the comparison begins; 0: the time of this machine
	Asked    func(sends int) // receives the progress; nil: no progress
	// Missing receives each send that the store lacks, in the order of time. If Missing is nil, the report lists the
	// sends that the store lacks.
	Missing func(m *MissingSend) error
}

// A Question asks the store which of the given users have a send of a message on a channel.
type Question struct {
	Message capping.Message
	Channel capping.Channel // 0: no channel
	Users   []capping.UserID
}

// Answer is the response of the store to a Question. The store has the send of each user who is in no list of the
// Answer.
type Answer struct {
	At          capping.Instant // time of the answer, by the clock of the service
	Missing     []MissingUsers
	Forgotten   int // number of users whose full log may have displaced the send
	Unavailable []capping.UserID
}

// MissingUsers lists users whose logs in the store do not contain the send. The logs of the users in a MissingUsers are
// in the same partition of the store.
type MissingUsers struct {
	Place string
	Users []capping.UserID
}

// MissingSend is a send that the audit contains and the store lacks.
type MissingSend struct {
	User     capping.UserID
	Message  capping.Message
	Channel  capping.Channel
	Name     string          // name of the channel under the policy in force; "": no channel
	At       capping.Instant // time when the call began
	Place    string          // part of the store with the user's log
	Instance string          // instance that wrote the record
	Sequence uint64

	asked      capping.Instant
	unrecorded bool // only a repeated call shows the send
}

// StoreReport is the result of the comparison of the audit with the store. All numbers in a StoreReport count sends.
type StoreReport struct {
	Since      time.Time `json:"since"` // beginning of the longest window, or the flag --since
	Sample     float64   `json:"sample_percent"`
	Asked      int64     `json:"asked"`
	Recorded   int64     `json:"recorded"`
	Missing    int64     `json:"missing"`
	Unrecorded int64     `json:"unrecorded"` // missing, and shown only by a repeated call, because the record is lost
	Doubtful   int64     `json:"doubtful"`   // missing, perhaps because of a release whose record is lost
	Changed    int64     `json:"changed"`    // missing at first, but released or erased meanwhile
	Forgotten  int64     `json:"forgotten"`  // possibly displaced by newer sends in a full log
	Unanswered int64     `json:"unanswered"` // sends for which the store returned no result
	NotAsked   int64     `json:"not_asked"`  // channel not configured, or too many sends missing already
	Places     []Place   `json:"places"`     // places where sends are missing
}

// A Place is a location in the store, such as a Redis partition, in which sends are missing.
type Place struct {
	Place   string    `json:"place"`
	Missing int64     `json:"missing"`
	First   time.Time `json:"first"` // first missing send
	Last    time.Time `json:"last"`
}

// These constants limit the questions of verify to the store.
const (
	askedAtOnce  = 4       // questions in parallel
	usersOfAsk   = 10_000  // maximum number of users in a question
	mostMissing  = 1 << 20 // number of missing sends from which verify stops asking
	lostReleases = 1000    // maximum number of unrecorded releases that one crash can explain

	// Verify expects a send in the store only if the send is younger than the longest window by at least ClockMargin.
	// Older sends may have left the store.
	ClockMargin = time.Minute
	// EraseMargin is the shortest time between a user's erasure and a later send that the store must hold.
	EraseMargin = 10 * time.Second

	clockMargin = capping.Instant(ClockMargin / time.Millisecond)
	eraseMargin = capping.Instant(EraseMargin / time.Millisecond)
)

// ErrUnaskable reports that the service cannot answer a question about sends, for example about a channel that is no
// longer configured.
var ErrUnaskable = errors.New("store cannot be queried")

// A comparison compares the sends in the audit with the sends in the store.
type comparison struct {
	*Store
	report  *StoreReport
	mu      sync.Mutex
	missing []MissingSend
	places  map[string]int // index in report.Places by place
}

// expectedSend is a send that the store should have, according to the audit.
type expectedSend struct {
	*call
	user       capping.UserID
	unrecorded bool // only a repeated call shows the send
}

// The method begin computes the earliest time of the sends that verify compares with the store. The earliest time
// depends on the longest window of all policies.
func (c *comparison) begin(ctx context.Context, w *work) error {
	if c.Now == 0 {
		c.Now = capping.InstantOf(time.Now())
	}
	if w.query.Since == 0 {
		longest, err := w.longestWindow(ctx)
		if err != nil {
			return err
		}
		w.query.Since = max(0, c.Now-capping.Instant(longest.Milliseconds()))
	}
	c.report.Since, c.report.Sample, c.report.Places = w.query.Since.Time(), 100, []Place{}
	if c.Sample != nil {
		c.report.Sample = c.Sample.Percent()
	}
	return nil
}

func (w *work) longestWindow(ctx context.Context) (longest time.Duration, err error) {
	found, err := w.archive.Source().List(ctx, audit.PoliciesPrefix)
	for _, o := range found {
		version, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, audit.PoliciesPrefix), ".yaml")
		if !ok {
			continue
		}
		if policy, err := w.archive.Policy(ctx, version); err == nil { // unreadable policies are reported elsewhere
			longest = max(longest, policy.Retention(0))
		}
	}
	return longest, err
}

// The method "owes" finds the sends of a user that the store should have, and adds these sends to the list of expected
// sends. The argument "sends" of the method "owes" must be in the order of time.
func (j *judge) owes(user capping.UserID, sends []send) {
	erased, wasErased := j.erased.At(user)
	for i := len(sends) - 1; i >= 0; i-- {
		s := &sends[i]
		switch {
		case s.gone != never || s.from < j.since || wasErased && s.from <= erased+eraseMargin:
		case !j.remembered(s, j.now+clockMargin) || j.again(sends, i, never) || displaced(sends, i):
		default:
			j.expected = append(j.expected, expectedSend{s.call, user, s.unrecorded})
		}
	}
}

// A user's log keeps a limited number of sends for each channel. The function "displaced" reports whether newer sends
// may have displaced the send with the index i from a full log.
func displaced(sends []send, i int) bool {
	if len(sends) <= capping.LogBound {
		return false
	}
	newer := 0
	for k := range sends {
		if k != i && sends[k].channel == sends[i].channel && sends[k].to >= sends[i].from {
			newer++
		}
	}
	return newer >= capping.LogBound
}

// The method ask asks the store for the expected sends: the sends that the store should hold according to the audit.
func (c *comparison) ask(ctx context.Context, p *pass, list []expectedSend) error {
	questions := p.questions(list)
	unanswered, err := c.askAll(ctx, p, questions)
	if err == nil && len(unanswered) > 0 {
		unanswered, err = c.askAll(ctx, p, unanswered)
	}
	for i := range unanswered {
		c.report.Unanswered += int64(len(unanswered[i].sends))
	}
	return err
}

// The type "asking" is a question to the store about expected sends.
type asking struct {
	sends []expectedSend // sends of one message and channel, sorted by user
}

// The method "questions" groups the expected sends by message and channel into questions to the store, with at most
// usersOfAsk sends in each question.
func (p *pass) questions(list []expectedSend) (questions []asking) {
	same := func(a, b expectedSend) bool { return a.message == b.message && a.channel == b.channel }
	slices.SortFunc(list, func(a, b expectedSend) int {
		return cmp.Or(cmp.Compare(a.message, b.message), cmp.Compare(a.channel, b.channel), cmp.Compare(a.user, b.user))
	})
	for len(list) > 0 {
		n := 1
		for n < len(list) && n < usersOfAsk && same(list[0], list[n]) {
			n++
		}
		questions = append(questions, asking{list[:n]})
		list = list[n:]
	}
	return questions
}

// askAll asks the store the questions in parallel. The method askAll returns questions about the sends for which the
// store returned no result.
func (c *comparison) askAll(ctx context.Context, p *pass, questions []asking) (unanswered []asking, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	parallel.AtMost(askedAtOnce, len(questions), func(i int) {
		if ctx.Err() != nil {
			return
		}
		if c.full() {
			c.count(func() { c.report.NotAsked += int64(len(questions[i].sends)) })
			return
		}
		answer, err := c.Ask(ctx, p.question(questions[i].sends))
		switch {
		case errors.Is(err, ErrUnaskable):
			c.count(func() { c.report.NotAsked += int64(len(questions[i].sends)) })
		case err != nil:
			cancel(err)
		default:
			c.count(func() {
				if left := c.take(p, questions[i].sends, answer); len(left) > 0 {
					unanswered = append(unanswered, asking{left})
				}
			})
		}
	})
	return unanswered, context.Cause(ctx)
}

func (p *pass) question(sends []expectedSend) *Question {
	message := p.texts[sends[0].message]
	q := &Question{
		Message: capping.Message{Namespace: message.namespace, ID: message.id}, Channel: sends[0].channel,
		Users: make([]capping.UserID, len(sends)),
	}
	for i := range sends {
		q.Users[i] = sends[i].user
	}
	return q
}

func (c *comparison) count(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

func (c *comparison) full() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.missing) >= mostMissing
}

// The method take compares a response of the store with the expected sends, and returns the sends for which the
// response has no result.
func (c *comparison) take(p *pass, sends []expectedSend, a *Answer) (open []expectedSend) {
	of := func(user capping.UserID) expectedSend {
		i, _ := slices.BinarySearchFunc(sends, user, func(s expectedSend, user capping.UserID) int {
			return cmp.Compare(s.user, user)
		})
		return sends[i]
	}
	for _, user := range a.Unavailable {
		open = append(open, of(user))
	}
	slices.SortFunc(open, func(a, b expectedSend) int { return cmp.Compare(a.user, b.user) })
	missing := 0
	for _, place := range a.Missing {
		missing += len(place.Users)
		for _, user := range place.Users {
			c.missing = append(c.missing, p.missing(of(user), place.Place, a.At))
		}
	}
	answered := len(sends) - len(open)
	c.report.Asked += int64(answered)
	c.report.Forgotten += int64(a.Forgotten)
	c.report.Recorded += int64(answered - a.Forgotten - missing)
	if c.Asked != nil {
		c.Asked(answered)
	}
	return open
}

func (p *pass) missing(o expectedSend, place string, asked capping.Instant) MissingSend {
	message := p.texts[o.message]
	m := MissingSend{
		User: o.user, Message: capping.Message{Namespace: message.namespace, ID: message.id}, Channel: o.channel,
		At:    o.from,
		Place: place, Instance: p.instances.list[o.instance], Sequence: o.sequence, asked: asked,
		unrecorded: o.unrecorded,
	}
	if policy := p.policies[o.policy].policy; policy != nil {
		m.Name = policy.ChannelName(o.channel)
	}
	return m
}

// The method conclude reads the audit a second time to confirm the missing sends, and reports the confirmed sends.
func (c *comparison) conclude(ctx context.Context, w *work) error {
	if len(c.missing) == 0 {
		return nil
	}
	if err := c.Settle(ctx); err != nil {
		return err
	}
	again, err := c.confirm(ctx, w)
	if err != nil {
		return err
	}
	unrecorded, err := c.takeUnrecorded(ctx, w)
	if err != nil {
		return err
	}
	doubts := &doubts{comparison: c, work: again}
	if err := doubts.settle(ctx); err != nil {
		return err
	}
	c.missing = append(c.missing, unrecorded...)
	slices.SortFunc(c.missing, byTime)
	for i := range c.missing {
		if err := c.record(&c.missing[i], w); err != nil {
			return err
		}
	}
	slices.SortFunc(c.report.Places, func(a, b Place) int { // sorts partition 2 before partition 10
		return cmp.Or(cmp.Compare(len(a.Place), len(b.Place)), cmp.Compare(a.Place, b.Place))
	})
	return nil
}

// sendKey identifies a send in the comparison of audit and store.
type sendKey struct {
	user    capping.UserID
	message capping.Message
	channel capping.Channel
}

func (m *MissingSend) key() sendKey { return sendKey{m.User, m.Message, m.Channel} }

// The method confirm reads the audit again. A send stays in the list of missing sends only if the store must have the
// send in spite of all later releases and erasures.
func (c *comparison) confirm(ctx context.Context, w *work) (*work, error) {
	erased, err := w.archive.Erased(ctx)
	if err != nil {
		return nil, err
	}
	users := make(map[capping.UserID]bool, len(c.missing))
	for i := range c.missing {
		users[c.missing[i].User] = true
	}
	still := map[sendKey]bool{}
	again := &work{
		archive: w.archive, query: w.query, config: w.config, policyOf: map[string]uint16{}, report: &Report{},
		erased: erased,
		since:  w.since, now: w.now, users: users,
		expected: func(_ context.Context, p *pass, list []expectedSend) error {
			for _, o := range list {
				m := p.missing(o, "", 0)
				still[m.key()] = true
			}
			return nil
		},
	}
	again.config.OnlyFiles = true
	again.query.Since = max(0, w.since-longestCall)
	for i := range c.missing { // ages count from the time of the question
		again.now = max(again.now, c.missing[i].asked)
	}
	if err := again.files(ctx); err != nil {
		return nil, err
	}
	if err := again.judge(ctx); err != nil {
		return nil, err
	}
	found := len(c.missing)
	c.missing = slices.DeleteFunc(c.missing, func(m MissingSend) bool { return !still[m.key()] })
	c.report.Changed += int64(found - len(c.missing))
	return again, nil
}

// The method record adds a send that the store lacks to the report.
func (c *comparison) record(m *MissingSend, w *work) error {
	if m.unrecorded {
		c.report.Unrecorded++
	} else {
		c.lacks(m, w)
	}
	if c.Missing == nil {
		return nil
	}
	return c.Missing(m)
}

// The method "lacks" adds to the report a send that the audit contains and the store lacks.
func (c *comparison) lacks(m *MissingSend, w *work) {
	c.report.Missing++
	at := m.At.Time()
	i, known := c.places[m.Place]
	if !known {
		i = len(c.report.Places)
		c.places[m.Place] = i
		c.report.Places = append(c.report.Places, Place{Place: m.Place, First: at})
	}
	p := &c.report.Places[i]
	p.Missing, p.Last = p.Missing+1, at
	w.find(Finding{
		Kind: NotInStore, Instance: m.Instance, Sequence: m.Sequence, At: at, User: w.named(m.User),
		Message: m.Message.ID, Namespace: m.Message.Namespace, Channel: m.Name, Place: m.Place,
		Text: "the store lacks a send that the audit contains",
	})
}
