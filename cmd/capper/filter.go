package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/terminal"
)

// filterCommand is the command `capper filter AUDIENCE`.
type filterCommand struct {
	cli.Service
	audience
	cli.Outputs
	MessageID string        `placeholder:"ID" help:"Id of the message. After an interruption, run the command again with the same id: each send then counts only once. Required without --preview."`
	Channel   string        `help:"Channel of the message, such as email, as named in the configuration of the service. Default: no channel."`
	Exempt    bool          `help:"Ignore limits, quiet hours and the holdout (a control group that gets no messages), but record the sends. Use this flag for transactional messages, such as one-time codes. Suppressed sets (groups of users who get no messages) apply only if their setting 'even_exempt' is true."`
	Preview   bool          `help:"Decide which users may receive the message, but record no sends."`
	Batch     int           `default:"100000" help:"Number of users in one call to the service."`
	Parallel  int           `default:"4" help:"Number of calls that the command makes to the service at the same time."`
	Timeout   time.Duration `default:"15m" help:"Maximum time from the start of the command to its last retry for users without a decision. The command asks the service about each user at least once, even after this time."`
}

// The function "undecided" returns the error of the command if the service could not decide about some users.
func undecided(users int) error {
	return terminal.WithStatus(terminal.Undecided, fmt.Errorf("%s could not be decided",
		terminal.Count(users, "user", "users")))
}

// The method Run asks the service which users of the audience may receive the message, and writes the users to files.
// After an interruption, the command writes no files, but the service has recorded allowed sends under the message id.
func (c *filterCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if err := c.check(); err != nil {
		return terminal.Misuse(err)
	}
	service, err := client.New(client.Config{
		// The command retries unavailable users after all other users are decided.
		URL: c.URL, Key: cli.Key(), BatchBitmap: c.Batch, Parallel: c.Parallel, LeaveUnavailable: true,
	})
	if err != nil {
		return terminal.Misuse(err)
	}
	todo, err := c.todo(ctx, on, service)
	if err != nil {
		return err
	}
	start := time.Now()
	r, err := c.decide(ctx, on, service, todo)
	if err != nil {
		return c.interrupted(ctx, err)
	}
	if err := c.Write(on, r); err != nil {
		return c.unwritten(err)
	}
	to := c.ReportTo(on)
	if c.JSON {
		err = terminal.JSON(to, c.report(r, time.Since(start)))
	} else {
		err = c.printResults(to, r, time.Since(start))
	}
	if n := r.Summary.Unavailable; err == nil && n > 0 {
		err = terminal.Hinted(undecided(n), "do not send to these users yet; "+cli.StatusSays+
			"; then run the same command again")
	}
	return err
}

// The method "check" rejects invalid combinations of flags, and output files that the command cannot write.
func (c *filterCommand) check() error {
	switch {
	case c.MessageID == "" && !c.Preview:
		return errors.New("--message-id is required unless --preview is set")
	case c.Exempt && c.Preview:
		return errors.New(
			"--exempt and --preview must not be combined, " +
				"because the call would neither deny a user nor record a send")
	case c.Batch < 1 || c.Parallel < 1:
		return fmt.Errorf("--batch and --parallel must be at least 1, got %d and %d", c.Batch, c.Parallel)
	}
	if err := c.audience.check(); err != nil {
		return err
	}
	return c.Outputs.Check(c.File)
}

// The method "todo" returns the users for whom the command requests decisions from the service.
func (c *filterCommand) todo(ctx context.Context, on *terminal.Streams, service *client.Client) (*cli.Todo, error) {
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return nil, c.interrupted(ctx, err)
	}
	if err := c.CheckKind(scheme.Kind()); err != nil {
		return nil, terminal.Misuse(err)
	}
	if c.Expression == "" {
		if scheme.Kind() != ids.Dense {
			list, err := c.list(ctx, on, scheme)
			if err != nil {
				return nil, err
			}
			return cli.TodoIDs(&cli.IDs{UserList: list, Batch: c.Batch, Parallel: c.Parallel}), nil
		}
		users, err := c.read(ctx, on)
		return cli.TodoUsers(users), err
	}
	parts, err := c.parts(ctx, service)
	if err != nil {
		return nil, c.interrupted(ctx, err)
	}
	return cli.TodoParts(parts, scheme, c.Batch, c.Parallel), nil
}

// The method "unwritten" adds advice to an error of writing the results: a second run of the command with the same
// message id gets the same results.
func (c *filterCommand) unwritten(err error) error {
	if c.Preview {
		return err
	}
	return terminal.Hinted(err, fmt.Sprintf("run the same command again: message id %q gets the same results",
		c.MessageID))
}

// The method "interrupted" adds advice about a second run to the error of a filter command that ended early.
func (c *filterCommand) interrupted(ctx context.Context, err error) error {
	switch {
	case terminal.StatusOf(err) == terminal.BadInput: // a retry of the same request returns the same error
		return err
	case client.HasCode(err, client.CodeGone):
		return terminal.Hinted(err, "no file was written; run the same command again without --generation: "+
			c.nobodyTwice())
	case c.Preview && (ctx.Err() != nil || client.Passing(err)):
		return terminal.Hinted(c.Hinted(err), "no file was written and no send recorded; run the same command again"+
			c.pinned())
	case ctx.Err() != nil || client.Passing(err):
		return terminal.Hinted(c.Hinted(err), fmt.Sprintf("no file was written; run the same command again%s: "+
			"message id %q continues from the recorded sends", c.pinned(), c.MessageID))
	case client.HasCode(err, client.CodeTooLarge):
		return terminal.Hinted(err, "use --batch N to put fewer users into one call")
	}
	return c.Hinted(err)
}

func (c *filterCommand) nobodyTwice() string {
	if c.Preview {
		return "nothing was counted"
	}
	return fmt.Sprintf("message id %q counts no user twice", c.MessageID)
}

// The method "decide" makes filter calls about the whole audience. Until the time limit, the method "decide" retries
// unavailable users (without a decision). If the service becomes unavailable after the first response, the method
// "decide" repeats the calls for the remaining users.
func (c *filterCommand) decide(ctx context.Context, on *terminal.Streams, service *client.Client,
	todo *cli.Todo) (*cli.Results, error) {
	shown := terminal.NewProgress(on, terminal.Users)
	defer shown.Stop()
	shown.Step("filter", todo.Users())
	r := cli.NewResults()
	r.IDs = todo.List()
	deadline := time.Now().Add(c.Timeout)
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		decided := decidedOf(&r.Summary)
		err := todo.Ask(ctx, service, c.request(), r, func() {
			// A retry without newly decided users prints no progress.
			if pause == time.Second || decidedOf(&r.Summary) > decided {
				showSums(shown, &r.Summary)
			}
		})
		late := time.Now().Add(pause).After(deadline)
		switch {
		case err != nil && (late || ctx.Err() != nil || !r.Answered() || !client.Passing(err)):
			return nil, err
		case err != nil:
			on.Say("going on in %s: %v", pause, err)
			todo = todo.Rest(r)
		case late || r.Unavailable.IsEmpty():
			return r, nil
		default:
			shown.Note(c.waiting(ctx, service, r.Summary.Unavailable, pause))
			todo = todo.Again(r)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// The method "waiting" returns a text for the pause before a retry: the number of undecided users, and the reason why
// the service could not decide.
func (c *filterCommand) waiting(ctx context.Context, service *client.Client, users int, pause time.Duration) string {
	return fmt.Sprintf("%s unavailable; the next retry is in %s, until --timeout %s ends: %s",
		terminal.Count(users, "user is", "users are"), pause, c.Timeout, whyUnavailable(ctx, service))
}

// whyUnavailable asks the service for the reason why users have no decision, because responses to filter calls contain
// no reasons. Every API key may call /healthz, whose response says whether the service needs a restart. Some keys may
// not call /v1/status.
func whyUnavailable(ctx context.Context, service *client.Client) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var dead *client.Error
	if err := service.Alive(ctx); errors.As(err, &dead) && dead.Code == client.CodeUnavailable {
		return dead.Message
	}
	if status, err := service.Status(ctx); err == nil && status.Store.Error != "" {
		return "the store is " + status.Store.State + ": " + status.Store.Error
	}
	return cli.StatusSays
}

// The method "request" returns the common part of all filter requests of the command: the request without users.
func (c *filterCommand) request() client.FilterRequest {
	return client.FilterRequest{
		MessageID: c.MessageID, Channel: c.Channel, Exempt: c.Exempt, Preview: c.Preview, Waves: c.WavesDir != "",
	}
}

// showSums shows the numbers of allowed, denied and undecided users next to the progress.
func showSums(shown *terminal.Progress, s *api.Summary) {
	decided := decidedOf(s)
	shown.Reach(int64(decided), fmt.Sprintf("%d allowed, %d denied, %d unavailable", s.Allowed, decided-s.Allowed,
		s.Unavailable))
}

// decidedOf returns the number of users who are allowed or denied.
func decidedOf(s *api.Summary) int {
	decided := s.Allowed
	for _, n := range s.Denied {
		decided += n
	}
	return decided
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// filterReport is the output of the filter command with --json.
type filterReport struct {
	MessageID string `json:"message_id,omitempty"`
	*whom
	api.Summary
	Seconds       float64 `json:"seconds"`
	Generation    string  `json:"generation"`
	ConfigVersion string  `json:"config_version"`

	Waves []cli.WaveReport `json:"waves,omitempty"` // only with --waves-dir
}

func (c *filterCommand) report(r *cli.Results, took time.Duration) filterReport {
	return filterReport{c.MessageID, c.whom(), r.Summary, took.Seconds(), r.Generation, r.ConfigVersion, c.Waves(r)}
}

func (c *filterCommand) printResults(to io.Writer, r *cli.Results, took time.Duration) error {
	s := r.Summary
	if c.Preview {
		fmt.Fprintln(to, "preview: no sends were recorded")
	}
	if c.Expression != "" {
		fmt.Fprintf(to, "audience %s of generation %s\n", c.Expression, c.Generation)
	}
	rows := [][]any{{"requested", s.Requested, fmt.Sprintf("in %.2f s", took.Seconds())},
		{"allowed", s.Allowed, replays(s.Replayed)}}
	rows = append(rows, deniedRows(&s)...)
	if err := terminal.Table(to, terminal.Left, rows...); err != nil {
		return err
	}
	requested := map[string]int{}
	for name, segment := range s.Segments {
		requested[name] = segment.Requested
	}
	rows = [][]any{{"SEGMENT", "REQUESTED", "ALLOWED"}}
	for _, name := range sortedCounts(requested) {
		rows = append(rows, []any{name, requested[name], s.Segments[name].Allowed})
	}
	if err := terminal.Table(to, terminal.Left, rows...); err != nil {
		return err
	}
	waves := c.Waves(r)
	if len(waves) == 0 {
		return nil
	}
	rows = [][]any{{"WAVE", "USERS", "ASK AGAIN FROM"}}
	for _, w := range waves {
		rows = append(rows, []any{w.File, w.Users, w.ReadyAt.UTC().Format(milliseconds)})
	}
	return terminal.Table(to, terminal.Left, rows...)
}

// deniedRows returns table rows with the number of users whom each limit or suppressed set denied. Further rows have
// the number of users whom each shadow limit (limit on trial) would have denied.
func deniedRows(s *api.Summary) (rows [][]any) {
	for _, limit := range sortedCounts(s.Denied) {
		if limit == api.LimitSuppressed && len(s.Suppressed) > 0 {
			for _, set := range sortedCounts(s.Suppressed) {
				rows = append(rows, []any{"denied", s.Suppressed[set], "by " + limit + ": " + set})
			}
			continue
		}
		rows = append(rows, []any{"denied", s.Denied[limit], "by " + limit})
	}
	if s.Unavailable > 0 {
		rows = append(rows, []any{"unavailable", s.Unavailable, "not decided"})
	}
	for _, limit := range sortedCounts(s.ShadowDenied) {
		rows = append(rows, []any{"shadow", s.ShadowDenied[limit], "allowed users whom " + limit + " would deny"})
	}
	return rows
}

func replays(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of them already recorded by an earlier call or run", n)
}

// sortedCounts returns the names of a map in descending order of their counts. Names with equal counts are in
// alphabetical order.
func sortedCounts(counts map[string]int) (names []string) {
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	return names
}
