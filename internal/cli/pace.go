package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/terminal"
)

// PaceCommand is the command `capper pace PACER [FILE]`.
type PaceCommand struct {
	Service
	Pacer     string         `arg:"" help:"Name of the pacer (a rate limit in the service's configuration), or several names separated by commas. With several names, each line needs a permit from every pacer."`
	File      string         `arg:"" optional:"" default:"-" help:"File with the lines to send; the command copies them to standard output. Default: standard input."`
	MessageID string         `placeholder:"ID" help:"Id of the message to which the input lines belong; required for pacers (named rate limits) with a separate limit for each message."`
	Key       string         `help:"Key of the input lines, such as the sender's phone number; required for pacers (named rate limits) with a separate limit for each key."`
	Share     string         `placeholder:"NAME" help:"Name of a share (a reserved part of the pacer's rate limit) from which the command takes the permits; the API key must permit this share. Default: the share of the API key, if any."`
	MaxWait   *time.Duration `placeholder:"D" help:"Maximum time that one input line may wait for its permit from the pacers (named rate limits); the command ends if a line must wait longer. With this flag, the setting 'max_wait' of each pacer also limits the wait. Default: no maximum."`
	Skip      int64          `placeholder:"N" help:"Number of lines to skip at the start of the input, to continue an earlier run."`
}

// Help returns the help text below the flags.
func (c *PaceCommand) Help() string {
	return "Copies each input line unchanged to standard output when the pacer (named rate limit) grants a permit " +
		"for the line. If the command is stopped, it reports the number of copied lines, counted from the start of " +
		"the input. To continue, set --skip to this number, minus the lines that the reader of the output took but " +
		"did not handle. On Linux, the command writes lines to a pipe only after the reader has taken the earlier " +
		"lines, and counts a line as copied when the reader has taken it. The command requests permits about one " +
		"second ahead. With --max-wait, the command requests permits further ahead, but no further than this time " +
		"and the max_wait of each pacer. The command gives back unused permits when it ends. If the command is " +
		"killed, the service takes back, within about 8 s, all permits with a send time more than 6 s after the kill."
}

// The method Validate rejects command-line flags whose values are out of range.
func (c *PaceCommand) Validate() error {
	switch {
	case c.Skip < 0:
		return fmt.Errorf("--skip %d must not be negative", c.Skip)
	case c.MaxWait != nil && (*c.MaxWait <= 0 || *c.MaxWait > api.MaxWait):
		return fmt.Errorf(
			"--max-wait %v must be more than 0s and at most 24h; "+
				"without the flag, an input line may wait for its permit forever",
			*c.MaxWait)
	}
	return nil
}

// The method Run copies the lines of the input to the output, at the rate at which the pacers grant permits.
func (c *PaceCommand) Run(ctx context.Context, on *terminal.Streams) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	service, err := c.Client()
	if err != nil {
		return err
	}
	look := api.PermitsRequest{Pacers: c.pacers(), MessageID: c.MessageID, Key: c.Key, Share: c.Share}
	_, err = service.Permits(ctx, look)
	switch { // checks the flags before the first line is read
	case ctx.Err() != nil:
		return c.report(on, &Copy{Skip: c.Skip}, permitsLeft{}, 0, ctx.Err())
	case err != nil:
		return c.refused(err)
	}
	from, total, err := c.open(on)
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	defer from.Close()
	copied := &Copy{From: from, To: on.Data(), Skip: c.Skip}
	pacer, err := c.pacer(on, service, look, copied.Needs)
	if err != nil {
		return terminal.Misuse(err)
	}
	// If the consumer of the output ends, a write must return an error, and must not end the process.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	shown := terminal.NewProgress(on, terminal.Lines)
	waits := &longWaits{pacer: pacer, say: shown.Note, look: func(ctx context.Context) (wait time.Duration,
		text string) {
		answer, err := service.Permits(ctx, look)
		if err != nil {
			return 0, "" // WaitStart returns this error
		}
		return c.slowest(answer.Pacers)
	}}
	copied.Take, copied.Reached = waits.take, func(lines int64) { shown.Reach(lines-c.Skip, "") }
	return c.copy(ctx, on, shown, copied, pacer, total)
}

// untilHangup returns a context that also ends when the terminal closes (SIGHUP), so that the command returns its
// unused permits. If the program nohup started the command, the command ignores SIGHUP.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return ctx, func() {}
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// The method "pacers" returns the names of the pacers in the command-line argument PACER.
func (c *PaceCommand) pacers() []string {
	names := strings.Split(c.Pacer, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// The method "longest" returns the maximum time for which the command waits for a permit. The result 0 means no
// maximum.
func (c *PaceCommand) longest() time.Duration {
	if c.MaxWait == nil {
		return 0
	}
	return *c.MaxWait
}

// The method "pacer" returns a client that requests permits for the lines from the pacers.
func (c *PaceCommand) pacer(on *terminal.Streams, service *client.Client, look api.PermitsRequest,
	needs func() int64) (*client.Pacer, error) {
	var trouble outage
	return client.NewPacer(service, client.PacerConfig{
		Pacers: look.Pacers, MessageID: look.MessageID, Key: look.Key, Share: look.Share, MaxWait: c.longest(),
		Expected: needs,
		OnRetry:  func(err error) { trouble.begin(func() { on.Say("no new permits, retrying: %v", err) }) },
		OnAnswer: func() { trouble.end(func() { on.Say("permits are available again") }) },
	})
}

// stopPatience is the time for which a stopped command waits for a blocked read or write.
const stopPatience = 200 * time.Millisecond

func (c *PaceCommand) copy(ctx context.Context, on *terminal.Streams, shown *terminal.Progress, copied *Copy,
	pacer *client.Pacer, total int64) error {
	shown.Step("pace "+c.Pacer, max(total-c.Skip, 0))
	start := time.Now()
	if copied.Outlet = outletOf(copied.To); copied.Outlet != nil {
		defer copied.Outlet.restore()
	}
	_, err := terminal.UntilStopped(ctx, stopPatience, func() (struct{}, error) { return struct{}{}, copied.Run(ctx) })
	shown.Stop()
	took, dropped := time.Since(start), pacer.Dropped()+copied.Late()
	return c.report(on, copied, permitsLeft{dropped, c.giveBack(on, pacer)}, took, err)
}

// permitsLeft counts the permits that the command got from the pacers and did not use for a line.
type permitsLeft struct{ dropped, returned int64 }

// returnPatience is the maximum time that the command waits while it returns permits to the service.
const returnPatience = 2 * time.Second

// giveBack returns the unused permits to the service and returns their number. giveBack also works after an
// interruption.
func (c *PaceCommand) giveBack(on *terminal.Streams, pacer *client.Pacer) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), returnPatience)
	defer cancel()
	returned, err := pacer.Close(ctx)
	if err != nil {
		on.Say("unused permits may delay other callers: %v", err)
	}
	return int64(returned)
}

// The type outage prints one message when calls to the service begin to fail, and no further message until a call
// succeeds.
type outage struct{ under atomic.Bool }

func (o *outage) begin(say func()) {
	if o.under.CompareAndSwap(false, true) {
		say()
	}
}

func (o *outage) end(say func()) {
	if o.under.CompareAndSwap(true, false) {
		say()
	}
}

// The type longWaits requests permits for lines from the pacers. If the pacers grant no permit for a long time,
// longWaits prints the reason.
type longWaits struct {
	pacer *client.Pacer
	look  func(context.Context) (wait time.Duration, text string) // result 0: print no message
	say   func(string)
}

// If the wait for a permit is longer than longWait, the command prints a message. The constant sayAgain is the minimum
// pause between two messages about a long wait.
const (
	longWait = time.Second
	sayAgain = 5 * time.Second
)

func (w *longWaits) take(ctx context.Context, most int) (client.Start, error) {
	over, stop := context.WithCancel(ctx)
	printed := make(chan struct{})
	timer := time.AfterFunc(longWait, func() { w.report(over); close(printed) })
	start, err := w.pacer.WaitStart(ctx, most)
	stop()
	if !timer.Stop() {
		<-printed
	}
	return start, err
}

// The method "report" prints the reason for a long wait repeatedly, until the wait ends. The longer the wait is, the
// longer are the pauses between the messages.
func (w *longWaits) report(over context.Context) {
	for over.Err() == nil {
		wait, text := w.look(over)
		if wait > 0 && over.Err() == nil {
			w.say("waiting for " + text)
		}
		select {
		case <-over.Done():
		case <-time.After(max(sayAgain, wait/4)):
		}
	}
}

// The method "slowest" finds the pacer with the longest wait for the next permit. The results of slowest are the wait
// for this pacer, and a text that names the pacer.
func (c *PaceCommand) slowest(pacers []api.PacerState) (wait time.Duration, text string) {
	for i := range pacers {
		p := &pacers[i]
		next := time.Duration(p.NextMS)
		if c.MaxWait != nil && p.QueueMS > 0 { // the service has already granted the permit
			next = min(next, time.Duration(p.QueueMS))
		}
		if next > wait {
			wait, text = next, fmt.Sprintf("%s (%s): %v", p.Name, limitOf(p), max(next.Round(time.Second), time.Second))
		}
	}
	return wait, text
}

// limitOf returns the name of the limit that delays the next permit of a pacer.
func limitOf(p *api.PacerState) string {
	switch {
	case p.Used != nil && *p.Used >= p.Max:
		return p.Window
	case p.Rate != "":
		return api.LimitRate
	}
	return api.LimitQueue
}

// pacedReport is the output of the pace command with --json.
type pacedReport struct {
	Lines   int64 `json:"lines"`             // number of lines that this run copied
	Skip    int64 `json:"skip"`              // value of --skip for continuing
	Unread  int64 `json:"unread,omitempty"`  // number of further lines that are still in the pipe
	Dropped int64 `json:"dropped,omitempty"` // number of permits that were not used in time
	// Returned is the number of unused permits that the command returned to the service.
	Returned int64   `json:"returned,omitempty"`
	Seconds  float64 `json:"seconds"`
}

// The method "report" prints the number of copied lines, counted from the beginning of the input, and the number of
// permits that expired unused. If not all lines were copied, the method "report" also prints the flag --skip for
// copying the rest.
func (c *PaceCommand) report(on *terminal.Streams, copied *Copy, left permitsLeft, took time.Duration,
	err error) error {
	reached, unread := copied.Lines(), copied.Unread()
	if errors.Is(err, syscall.EPIPE) {
		unread = 0 // no program can read these lines any more
	}
	now := reached - c.Skip
	switch {
	case c.JSON:
		if err := terminal.JSON(on.Err, pacedReport{now, reached, unread, left.dropped, left.returned,
			took.Round(time.Millisecond).Seconds()}); err != nil {
			return err
		}
	case errors.As(err, new(*shortError)): // the input has fewer lines than --skip
	case err != nil:
		on.Say("%s; go on with --skip %d", c.through(reached), reached)
		if unread > 0 {
			on.Say("%s in the pipe: if the reader takes the rest, go on with --skip %d", c.left(unread), reached+unread)
		}
	case now == 0:
		on.Say("%s", c.through(reached))
	default:
		on.Say("%s: %.1f s%s", c.through(reached), took.Seconds(), lineRate(now, took))
	}
	if left.dropped > 0 && !c.JSON {
		on.Say("%s", tooLate(left.dropped))
	}
	if left.returned > 0 && err != nil && !c.JSON {
		on.Say("%s", givenBack(left.returned))
	}
	return c.fault(err)
}

// lineRate returns a text with the rate of the copied lines. For the rate, n lines count as n-1 intervals. For fewer
// than two lines, lineRate returns "".
func lineRate(lines int64, took time.Duration) string {
	if lines < 2 {
		return ""
	}
	return fmt.Sprintf(", %.0f/s", float64(lines-1)/max(took.Seconds(), 1e-3))
}

// The method "through" returns a sentence with the number of copied lines of the input.
func (c *PaceCommand) through(reached int64) string {
	text := fmt.Sprintf("%d lines were copied", reached)
	if reached == 1 {
		text = "1 line was copied"
	}
	if c.Skip > 0 {
		text += fmt.Sprintf(", %d of them in this run", reached-c.Skip)
	}
	return text
}

// tooLate returns a sentence about permits that the command dropped because their time had passed.
func tooLate(dropped int64) string {
	if dropped == 1 {
		return "1 permit was dropped because it was not used in time"
	}
	return fmt.Sprintf("%d permits were dropped because they were not used in time", dropped)
}

// givenBack returns a sentence about permits that were returned to the service.
func givenBack(returned int64) string {
	if returned == 1 {
		return "1 unused permit was given back"
	}
	return fmt.Sprintf("%d unused permits were given back", returned)
}

// The method "left" returns a sentence about written lines that the consumer of the output has not read.
func (c *PaceCommand) left(unread int64) string {
	if unread == 1 {
		return "1 more line is unread"
	}
	return fmt.Sprintf("%d more lines are unread", unread)
}

// The method "fault" adds the exit status to the error of the command: "bad input" if the input is invalid, and
// otherwise "failure".
func (c *PaceCommand) fault(err error) error {
	var read *readError
	var write *writeError
	var long *client.QueueTooLongError
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &read):
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("read %s: %w", c.File, err))
	case errors.As(err, &write) && errors.Is(err, syscall.EPIPE):
		return terminal.Hinted(fmt.Errorf(
			"write standard output: the program that reads the output has ended: %w", err),
			"the copied lines include those that the program took and did not handle: subtract them from --skip")
	case errors.As(err, &write):
		return fmt.Errorf("write standard output: %w", err)
	case errors.As(err, &long):
		return terminal.Hinted(err, c.queueHint(long))
	}
	return c.refused(err)
}

// queueHint returns advice for the error that the wait for a permit would be longer than allowed.
func (c *PaceCommand) queueHint(long *client.QueueTooLongError) string {
	if long.Wait <= c.longest() {
		return "continue later, with another provider, or without --max-wait: the pacer's own max_wait is shorter"
	}
	if _, err := time.ParseDuration(long.Limit); err == nil {
		return "continue later, with another provider, or without --max-wait, which waits for the limit"
	}
	return "continue later, or with another provider"
}

// The method "refused" adds advice to the error of a permit request that the service rejected.
func (c *PaceCommand) refused(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case client.HasCode(err, client.CodeForbidden) && errors.As(err, &refused) && refused.Field != "":
		return c.Hinted(err) // the client of the API key may not use one of the pacers
	case client.HasCode(err, client.CodeForbidden):
		return terminal.Hinted(err, "the key in "+KeyVariable+" needs the scope filter")
	case errors.As(err, &refused) && refused.Field == "message_id" && c.MessageID == "":
		return terminal.Hinted(err, "the pacer has a separate log for each message; add --message-id")
	case errors.As(err, &refused) && refused.Field == "key" && c.Key == "":
		return terminal.Hinted(err, "the pacer has a separate log for each key; add --key")
	case errors.As(err, &refused) && strings.HasPrefix(refused.Field, "pacers"):
		return terminal.Hinted(err, "capper pacers lists the configured pacers")
	}
	return c.Hinted(err)
}

// The method "open" opens the input file, and counts the lines of the file. The number 0 means an unknown number of
// lines.
func (c *PaceCommand) open(on *terminal.Streams) (from io.ReadCloser, total int64, err error) {
	if c.File == "-" {
		return io.NopCloser(on.In), 0, nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		if total, err = count(file); err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, total, nil
}
