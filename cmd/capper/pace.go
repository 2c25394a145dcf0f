package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/cmd/capper/lines"
	"capper/internal/console"
)

// paceCommand is `capper pace PACER [FILE]`.
type paceCommand struct {
	remote
	Pacer     string         `arg:"" help:"The pacer; several with commas between, all of which have to grant a line."`
	File      string         `arg:"" optional:"" default:"-" help:"Lines to copy. Default: standard input."`
	MessageID string         `placeholder:"ID" help:"The message that the lines are of, which pacers per message need."`
	MaxWait   *time.Duration `placeholder:"D" help:"End when a line would have to wait longer for its slot: more than the windows of the pacer's limits, or the first that is used up ends it. Default: wait however long it is."`
	Skip      int64          `placeholder:"N" help:"Go on behind the first N lines."`
}

// Help is printed below the flags.
func (c *paceCommand) Help() string {
	return "Lines go to standard output as they are, each when a permit of the pacer lets it, those that may go at the same time together. " +
		"Stopped, it says how many went through, and --skip goes on there."
}

// Validate refuses flags that make no sense.
func (c *paceCommand) Validate() error {
	switch {
	case c.Skip < 0:
		return fmt.Errorf("--skip %d: must not be negative", c.Skip)
	case c.MaxWait != nil && (*c.MaxWait <= 0 || *c.MaxWait > api.MaxWait):
		return fmt.Errorf("--max-wait %v: must be more than 0s, 24h at most; without it lines wait however long it takes", *c.MaxWait)
	}
	return nil
}

// Run copies the lines at the pace.
func (c *paceCommand) Run(ctx context.Context, on *console.Streams) error {
	service, err := c.client()
	if err != nil {
		return err
	}
	names := c.pacers()
	if _, err := service.Permits(ctx, client.PermitsRequest{Pacers: names, MessageID: c.MessageID}); err != nil {
		return c.refused(err) // before a line is read
	}
	from, total, err := c.open(on)
	if err != nil {
		return console.WithStatus(console.BadInput, err)
	}
	defer from.Close()
	pacer, err := client.NewPacer(service, client.PacerConfig{
		Pacers: names, MessageID: c.MessageID, MaxWait: c.longest(), OnRetry: func(err error) { on.Say("going on: %v", err) },
	})
	if err != nil {
		return console.Misuse(err)
	}
	// A reader that has gone is an error of the write, and not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Reset(syscall.SIGPIPE)
	return c.copy(ctx, on, pacer, from, total)
}

// pacers are the names in PACER.
func (c *paceCommand) pacers() []string {
	names := strings.Split(c.Pacer, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// longest is the longest wait for a slot; 0: however long it is.
func (c *paceCommand) longest() time.Duration {
	if c.MaxWait == nil {
		return 0
	}
	return *c.MaxWait
}

// stopPatience is how long a copy that was stopped has to return from a read or a
// write.
const stopPatience = 200 * time.Millisecond

func (c *paceCommand) copy(ctx context.Context, on *console.Streams, pacer *client.Pacer, from io.Reader, total int64) error {
	reached, done := c.show(on, total)
	start := time.Now()
	copied := &lines.Copy{From: from, To: on.Data(), Skip: c.Skip, Reached: reached, Take: pacer.WaitUpTo}
	_, err := console.UntilStopped(ctx, stopPatience, func() (struct{}, error) { return struct{}{}, copied.Run(ctx) })
	done()
	return c.report(on, copied.Lines(), time.Since(start), err)
}

// show tells how far it is.
func (c *paceCommand) show(on *console.Streams, total int64) (reached func(int64), done func()) {
	shown := console.NewProgress(on, console.Lines)
	shown.Step("pace "+c.Pacer, max(total-c.Skip, 0))
	return func(lines int64) { shown.Reach(lines-c.Skip, "") }, shown.Stop
}

// pacedReport is what --json prints.
type pacedReport struct {
	Lines   int64   `json:"lines"` // that went through in this run
	Skip    int64   `json:"skip"`  // to go on with
	Seconds float64 `json:"seconds"`
}

// report tells how many lines went through, counted from the beginning of the input,
// and how to go on when there are more.
func (c *paceCommand) report(on *console.Streams, reached int64, took time.Duration, err error) error {
	now := reached - c.Skip
	switch {
	case c.JSON:
		if told := console.JSON(on.Err, pacedReport{now, reached, took.Seconds()}); told != nil {
			return told
		}
	case errors.As(err, new(*lines.ShortError)): // there is nothing to go on behind
	case err != nil:
		on.Say("%s; go on with --skip %d", c.through(reached), reached)
	case now == 0:
		on.Say("%s", c.through(reached))
	default:
		on.Say("%s: %.1f s, %.0f/s", c.through(reached), took.Seconds(), float64(now)/max(took.Seconds(), 1e-3))
	}
	return c.fault(err)
}

// through says that so many lines went through.
func (c *paceCommand) through(reached int64) string {
	text := fmt.Sprintf("%d %s went through", reached, plural(int(reached), "line"))
	if c.Skip > 0 {
		text += fmt.Sprintf(", %d of them in this run", reached-c.Skip)
	}
	return text
}

// fault tells what is wrong with the input from what is wrong on the way.
func (c *paceCommand) fault(err error) error {
	var read *lines.ReadError
	var write *lines.WriteError
	var long *client.QueueTooLongError
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &read):
		return console.WithStatus(console.BadInput, fmt.Errorf("read %s: %w", c.File, err))
	case errors.As(err, &write) && errors.Is(err, syscall.EPIPE):
		return fmt.Errorf("write standard output: who read it has gone: %w", err)
	case errors.As(err, &write):
		return fmt.Errorf("write standard output: %w", err)
	case errors.As(err, &long):
		return console.Hinted(err, "go on later, or through another provider")
	}
	return c.refused(err)
}

// refused adds what to do about a call that was refused.
func (c *paceCommand) refused(err error) error {
	var refused *client.Error
	switch {
	case err == nil:
		return nil
	case client.HasCode(err, client.CodeForbidden):
		return console.Hinted(err, "the key in "+keyVariable+" needs the scope filter")
	case errors.As(err, &refused) && refused.Field == "message_id" && c.MessageID == "":
		return console.Hinted(err, "the pacer has a log for each message: --message-id says which")
	case errors.As(err, &refused) && strings.HasPrefix(refused.Field, "pacers"):
		return console.Hinted(err, "capper pacers lists those that are configured")
	}
	return c.hinted(err)
}

// open opens the lines and counts them, as far as they are there: 0 is unknown.
func (c *paceCommand) open(on *console.Streams) (from io.ReadCloser, total int64, err error) {
	if c.File == "-" {
		return io.NopCloser(on.In), 0, nil
	}
	file, err := os.Open(c.File)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		if total, err = lines.Count(file); err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, total, nil
}
