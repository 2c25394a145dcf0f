package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"capper/client"
	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/verify"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/share"
	"capper/internal/terminal"
)

// StoreFlags holds the command-line flags for comparing the audit with the store.
type StoreFlags struct {
	Store          bool          `help:"Also compare the audit with the store of the running service, and report recorded sends that the store has lost."`
	URL            string        `default:"http://127.0.0.1:8080" env:"CAPPER_URL" help:"Base URL of the service; used with --store."`
	Sample         sampleShare   `placeholder:"1%" help:"Percentage of users to check. The command compares only the sends of these users with the store, and selects other users every day. Used with --store. Default: all users."`
	SampleSalt     string        `placeholder:"TEXT" help:"Salt (any text) of the random sample: with the same salt, --sample selects the same users. Used with --store. Default: the current day in UTC, such as 2026-11-23."`
	UsersPerSecond int           `default:"5000" placeholder:"N" help:"Maximum rate, in users per second, at which the command asks the store about sends; used with --store."`
	Missing        string        `placeholder:"FILE" help:"Output file (CSV) for the sends that are in the audit but not in the store. The command 'capper import' can read this file. If the original id of a user is unknown, the column 'user_id' contains 'image:' and the 64-bit hash of the id. Used with --store."`
	Settle         time.Duration `placeholder:"DURATION" help:"Time that the command waits before it reports missing sends, so that the records of cancelled sends can reach the audit. Used with --store. Default: 15s, or the setting audit.roll plus one minute if the audit is on S3."`
}

// sampleShare is a percentage of users, such as 1%.
type sampleShare struct{ value float64 }

// UnmarshalText parses a percentage of users on the command line.
func (p *sampleShare) UnmarshalText(text []byte) error {
	number, ok := strings.CutSuffix(string(text), "%")
	value, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(value > 0 && value <= 100) {
		return fmt.Errorf("must be a percentage above 0%% and at most 100%%, such as 1%%, got %q", text)
	}
	p.value = value
	return nil
}

// The method "check" rejects invalid values and combinations of the flags for the comparison with the store.
func (f *StoreFlags) check(span *Span) error {
	switch {
	case !f.Store && (f.Sample.value > 0 || f.SampleSalt != "" || f.Missing != "" || f.Settle != 0):
		return errors.New("--sample, --sample-salt, --missing and --settle require --store")
	case f.Store && span.Until.Given():
		return errors.New(
			"--until must not be combined with --store: the comparison needs every release (cancelled send) up to now")
	case f.UsersPerSecond < 1:
		return errors.New("--users-per-second must be at least 1")
	case f.Settle < 0:
		return errors.New("--settle: the duration must not be negative")
	case f.SampleSalt != "" && f.Sample.value == 0:
		return errors.New("--sample-salt requires --sample")
	case len(f.SampleSalt) > share.MaxSalt:
		return fmt.Errorf("--sample-salt must be at most %d bytes", share.MaxSalt)
	case f.Missing != "":
		return terminal.CheckTarget(f.Missing)
	}
	return nil
}

// storeAsker asks a running service which recorded sends its store contains.
type storeAsker struct {
	flags    *StoreFlags
	api      *client.Client
	channels map[capping.Channel]string // configured channels, by number
	now      time.Time                  // time according to the service
	settle   time.Duration
	pace     *rate.Limiter
	shown    *terminal.Progress
	asked    int64
	ids      audit.IDs
	name     archive.Name   // converts a user to its id, for ids that are not dense
	out      *terminal.File // nil: no file is written
	rows     *csv.Writer
}

// The method "open" checks the kind of user ids and the settings of the service, before the comparison reads the audit.
func (f *StoreFlags) open(
	ctx context.Context, on *terminal.Streams, at *Place, ids audit.IDs, name archive.Name,
) (*storeAsker, error) {
	service := Service{URL: f.URL}
	asked, err := service.Client()
	if err != nil {
		return nil, err
	}
	a := &storeAsker{flags: f, api: asked, channels: map[capping.Channel]string{}, settle: f.settleTime(at),
		ids: ids, name: name}
	a.pace = rate.NewLimiter(rate.Limit(f.UsersPerSecond), f.UsersPerSecond)
	if err := a.sameIDs(ctx, &service); err != nil {
		return nil, err
	}
	limits, err := asked.Limits(ctx)
	if client.HasCode(err, client.CodeForbidden) {
		return nil, terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope read")
	}
	if err != nil {
		return nil, service.Hinted(err)
	}
	for name, number := range limits.Channels {
		a.channels[capping.Channel(number)] = name
	}
	status, err := asked.Status(ctx)
	if err != nil {
		return nil, service.Hinted(err)
	}
	a.now = status.Time
	if err := a.mayAsk(ctx); err != nil {
		return nil, err
	}
	if f.Missing != "" {
		if a.out, err = terminal.CreatePrivateFile(f.Missing); err != nil {
			return nil, err
		}
		a.rows = csv.NewWriter(a.out)
		if err := a.rows.Write(a.columns()); err != nil {
			return nil, err
		}
	}
	a.shown = terminal.NewProgress(on, terminal.Users)
	a.shown.Step("ask the store", 0)
	return a, nil
}

// sameIDs returns an error unless the service and the audit have the same kind and key of user ids.
func (a *storeAsker) sameIDs(ctx context.Context, service *Service) error {
	scheme, err := service.Scheme(ctx, a.api)
	if err != nil {
		return err
	}
	if have := audit.IDsOf(scheme); have != a.ids {
		return terminal.Misuse(fmt.Errorf(
			"the service at %s has ids of the kind %s, but the audit has ids of the kind %s",
			a.flags.URL, have, a.ids))
	}
	return nil
}

// The method "columns" returns the column names in the file of missing sends. If user ids have a kind other than dense
// (32-bit numbers), the column "image" contains the user's id image (64-bit hash). If the user id is unknown, the
// column "user_id" contains the text of the id image (archive.ImageName).
func (a *storeAsker) columns() []string {
	columns := []string{"user_id", "at", "channel", "message_id", "namespace"}
	if !a.ids.Dense() {
		columns = append(columns, "image")
	}
	return columns
}

// noNamespace is a text that is not a valid namespace. If the API key has a namespace, the service rejects a call with
// the namespace noNamespace.
const noNamespace = "-"

// mayAsk returns an error if the API key has a namespace. For an API key with a namespace, the service reports only
// sends of the namespace.
func (a *storeAsker) mayAsk(ctx context.Context) error {
	err := a.check(ctx, &client.SendsCheckRequest{MessageID: "-", Namespace: noNamespace}, []capping.UserID{0},
		&verify.Answer{})
	if err != nil {
		return a.hinted(err)
	}
	return nil
}

// The method "check" asks the service about a send of the given users, and adds the response to the argument "to". The
// response says which of the users have the send in the store.
func (a *storeAsker) check(
	ctx context.Context, r *client.SendsCheckRequest, users []capping.UserID, to *verify.Answer,
) error {
	if a.ids.Dense() {
		r.Users = capping.AppendDense(nil, users)
		found, err := a.api.CheckSends(ctx, r)
		if err == nil {
			addAnswer(to, found)
		}
		return err
	}
	for _, user := range users {
		r.Images = append(r.Images, uint64(user))
	}
	found, err := a.api.CheckSendsOfIDs(ctx, r)
	if err != nil {
		return err
	}
	return addImages(to, found)
}

// The constants below are the default times for which the command waits before it reads the audit again. During the
// wait, the records of finished releases (removals of sends) reach the audit.
const (
	settleDirectory = 15 * time.Second
	settleS3        = 10*time.Minute + settleMargin
	settleMargin    = time.Minute
)

func (f *StoreFlags) settleTime(at *Place) time.Duration {
	switch {
	case f.Settle > 0:
		return f.Settle
	case !objects.IsURL(at.Audit):
		return settleDirectory
	case at.configured != nil:
		return at.configured.Audit.Roll + settleMargin
	}
	return settleS3
}

// The method "questions" returns the functions with which package verify asks a running service about the sends in its
// store.
func (a *storeAsker) questions() *verify.Store {
	s := &verify.Store{Ask: a.ask, Settle: a.wait, Released: a.released, Sample: a.sample(),
		Now: capping.InstantOf(a.now)}
	s.Asked = func(sends int) {
		a.asked += int64(sends)
		a.shown.Reach(a.asked, "")
	}
	if a.out != nil {
		s.Missing = a.write
	}
	return s
}

func (a *storeAsker) sample() *share.Share {
	if a.flags.Sample.value == 0 {
		return nil
	}
	salt := a.flags.SampleSalt
	if salt == "" {
		salt = a.now.UTC().Format(time.DateOnly)
	}
	s, err := share.New(share.Sample, a.flags.Sample.value, salt)
	if err != nil { // cannot happen after check
		return nil
	}
	return &s
}

// The method "ask" asks the service about the sends of a question, in several API calls, at the rate that the flags
// set.
func (a *storeAsker) ask(ctx context.Context, q *verify.Question) (*verify.Answer, error) {
	channel, configured := a.channels[q.Channel]
	if q.Channel != 0 && !configured {
		return nil, fmt.Errorf("channel %d: %w", q.Channel, verify.ErrUnaskable)
	}
	whole := &verify.Answer{}
	for users := q.Users; len(users) > 0; {
		n := min(len(users), a.flags.UsersPerSecond)
		if err := a.pace.WaitN(ctx, n); err != nil {
			return nil, err
		}
		err := a.check(ctx, &client.SendsCheckRequest{
			MessageID: q.Message.ID, Namespace: q.Message.Namespace, Channel: channel,
		}, users[:n], whole)
		if err != nil {
			return nil, a.hinted(err)
		}
		users = users[n:]
	}
	return whole, nil
}

func addAnswer(to *verify.Answer, found *api.SendsCheck) {
	to.At = max(to.At, capping.InstantOf(found.Time))
	to.Forgotten += found.Summary.Forgotten
	to.Unavailable = capping.AppendUsers(to.Unavailable, found.Unavailable)
	for _, missing := range found.Missing {
		if missing.Partition != nil {
			place := fmt.Sprintf("partition %d at %s", *missing.Partition, shown(missing.Node))
			to.Missing = append(to.Missing, verify.MissingUsers{Place: place, Users: capping.AppendUsers(nil,
				missing.UserIDs)})
			continue
		}
		for _, user := range missing.UserIDs { // the embedded store returns groups of adjacent ids
			first := user &^ 0xFFFF
			place := fmt.Sprintf("users %d to %d", first, first|0xFFFF)
			to.Missing = append(to.Missing, verify.MissingUsers{Place: place,
				Users: []capping.UserID{capping.UserID(user)}})
		}
	}
}

// addImages works like addAnswer, for a response that contains id images (64-bit hashes) instead of dense ids.
func addImages(to *verify.Answer, found *api.SendsCheckStrings) error {
	to.At = max(to.At, capping.InstantOf(found.Time))
	to.Forgotten += found.Summary.Forgotten
	unavailable, err := parseImages(found.Unavailable)
	if err != nil {
		return err
	}
	to.Unavailable = append(to.Unavailable, unavailable...)
	for _, missing := range found.Missing {
		users, err := parseImages(missing.UserIDs)
		if err != nil {
			return err
		}
		if missing.Partition != nil {
			place := fmt.Sprintf("partition %d at %s", *missing.Partition, shown(missing.Node))
			to.Missing = append(to.Missing, verify.MissingUsers{Place: place, Users: users})
			continue
		}
		for _, user := range users { // the embedded store returns groups of adjacent images
			const low = 1<<48 - 1
			place := fmt.Sprintf("images %016x to %016x", uint64(user&^low), uint64(user|low))
			to.Missing = append(to.Missing, verify.MissingUsers{Place: place, Users: []capping.UserID{user}})
		}
	}
	return nil
}

// parseImages parses the texts of id images (64-bit hashes) in a response.
func parseImages(texts []string) (users []capping.UserID, err error) {
	for _, text := range texts {
		user, ok := parseImage(text)
		if !ok {
			return nil, fmt.Errorf(
				"the service must return id images (64-bit hashes of ids) in hexadecimal digits, got %q", text)
		}
		users = append(users, user)
	}
	return users, nil
}

func (a *storeAsker) hinted(err error) error {
	if client.HasCode(err, client.CodeForbidden) {
		return terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope read and no namespace: the "+
			"comparison covers the sends of all namespaces")
	}
	service := Service{URL: a.flags.URL}
	return service.Hinted(err)
}

// The method "released" returns the store's number of released sends of the message. If the store knows only a lower
// bound of the number of released sends, the result "counted" is false.
func (a *storeAsker) released(
	ctx context.Context, message capping.Message,
) (sends int64, channels int, counted bool, err error) {
	found, err := a.api.Message(ctx, message.ID, message.Namespace)
	switch {
	case client.HasCode(err, client.CodeNotFound):
		return 0, 0, false, nil
	case err != nil:
		return 0, 0, false, a.hinted(err)
	}
	counted = true
	for i := range found.Channels {
		sends += found.Channels[i].Released
		counted = counted && !found.Channels[i].AtLeast
	}
	return sends, len(found.Channels), counted, nil
}

// The method "wait" waits for the time "settle", so that the records of finished releases (removals of sends) reach the
// audit.
func (a *storeAsker) wait(ctx context.Context) error {
	a.shown.Step(fmt.Sprintf("sends are missing: waiting %s for releases to reach the audit", a.settle), 0)
	timer := time.NewTimer(a.settle)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
	}
	a.shown.Step("read the audit again", 0)
	return nil
}

func (a *storeAsker) write(m *verify.MissingSend) error {
	row := []string{
		strconv.FormatUint(uint64(m.User), 10), m.At.Time().Format(milliseconds), a.channels[m.Channel], m.Message.ID,
		m.Message.Namespace,
	}
	if !a.ids.Dense() {
		row[0] = a.name(m.User)
		row = append(row, fmt.Sprintf("%016x", uint64(m.User)))
	}
	return a.rows.Write(row)
}

// The method "finish" completes the file that lists the missing sends. If the comparison with the store failed, the
// method "finish" writes no file.
func (a *storeAsker) finish(failed error) error {
	if a.out == nil || failed != nil {
		return nil
	}
	a.rows.Flush()
	if err := a.rows.Error(); err != nil {
		return err
	}
	return a.out.Commit()
}

func (a *storeAsker) close() {
	a.shown.Stop()
	if a.out != nil {
		a.out.Abort()
	}
}

// mostPlaces is the maximum number of places (parts of the store in which sends are missing) that printStore prints.
// With --json, the report has all places.
const mostPlaces = 100

// printStore prints the result of the comparison of the audit with the store.
func printStore(on *terminal.Streams, s *verify.StoreReport) error {
	if len(s.Places) > 0 {
		rows := [][]any{{"PLACE", "MISSING", "FIRST", "LAST"}}
		for _, p := range s.Places[:min(len(s.Places), mostPlaces)] {
			rows = append(rows, []any{p.Place, p.Missing, p.First.Format(milliseconds), p.Last.Format(milliseconds)})
		}
		if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
			return err
		}
	}
	if more := len(s.Places) - mostPlaces; more > 0 {
		if _, err := fmt.Fprintf(on.Out, "and %d more places\n", more); err != nil {
			return err
		}
	}
	return printCounts(on.Out, s)
}

func printCounts(to io.Writer, s *verify.StoreReport) error {
	text := fmt.Sprintf("store: %d sends of %v %% of the users since %s: %d recorded, %d missing", s.Asked, s.Sample,
		s.Since.Format(time.RFC3339),
		s.Recorded, s.Missing)
	for _, more := range []struct {
		n    int64
		what string
	}{
		{s.Unrecorded, "missing without a record (only a repeated call shows them)"},
		{s.Changed, "given back or erased in the " +
			"meantime"}, {s.Doubtful, "possibly given back by calls that the audit lost"},
		{s.Forgotten, "possibly displaced by newer sends of a full log"}, {s.Unanswered, "without an answer"},
		{s.NotAsked, "not asked for"},
	} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.what)
		}
	}
	_, err := fmt.Fprintln(to, text)
	return err
}
