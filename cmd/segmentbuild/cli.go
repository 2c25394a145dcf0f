package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"capper/internal/console"
	"capper/internal/objects"
	"capper/internal/segments/build"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
)

// Exit statuses; the help documents them.
const (
	statusDone     = 0
	statusFailure  = 1
	statusUsage    = 2
	statusBadInput = 3
	statusOverlap  = 4
	statusGuard    = 5
	statusLostRace = 6
	statusHold     = 7
)

const description = `Builds segments of users from raw ids and publishes them, as one generation, to a directory or to S3.

Exit status: 0 done, 1 failure, 2 usage, 3 bad input, 4 segments overlap, 5 refused by the guard, 6 somebody else published first, 7 publishing is on hold.`

type cli struct {
	Build       buildCommand       `cmd:"" help:"Build segments and publish them as the live generation."`
	List        listCommand        `cmd:"" help:"List the generations and which one is live."`
	Inspect     inspectCommand     `cmd:"" help:"Show the segments of a generation, or a bitmap file."`
	Diff        diffCommand        `cmd:"" help:"Show what changes from one generation to another."`
	Members     membersCommand     `cmd:"" help:"Ask whether a user is in a segment, or sample its users."`
	Export      exportCommand      `cmd:"" help:"Write the users of a segment as ids or as a bitmap."`
	Verify      verifyCommand      `cmd:"" help:"Download a generation and check everything that a reader checks."`
	Rollback    rollbackCommand    `cmd:"" help:"Make an earlier generation live again."`
	ReleaseHold releaseHoldCommand `cmd:"" name:"release-hold" help:"End a hold of rollback --hold: publishing goes on."`
	Gc          gcCommand          `cmd:"" name:"gc" help:"Remove old generations and what only they use."`
	Generate    generateCommand    `cmd:"" help:"Write synthetic segments, for tests and demonstrations."`
	Version     kong.VersionFlag   `help:"Print the version."`
}

// env is what a command works with. What it says goes to stdout and stderr,
// where nothing of it can be obeyed by a terminal; data goes out as it is.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr *console.Writer
}

// data is standard output for the bytes of a file.
func (e *env) data() io.Writer { return e.stdout.Unwrap() }

// place are the flags that reach a location; S3 credentials come from the SDK's usual chain.
type place struct {
	S3Endpoint  string        `name:"s3-endpoint" placeholder:"URL" help:"S3 server other than AWS (also AWS_ENDPOINT_URL_S3)."`
	S3Region    string        `name:"s3-region" placeholder:"NAME" help:"Region (also AWS_REGION)."`
	S3PathStyle *bool         `name:"s3-path-style" negatable:"" help:"Bucket in the path; the default when an endpoint is set."`
	Timeout     time.Duration `default:"1h" help:"Give up after this time."`
}

func (p *place) s3(e *env) objects.S3Config {
	return objects.S3Config{Endpoint: p.S3Endpoint, Region: p.S3Region, PathStyle: p.S3PathStyle,
		Patient: true, Retrying: (&retryNotice{to: e.stderr, timeout: p.Timeout}).show}
}

// retryNotice says on standard error that S3 is asked again, every ten seconds at most.
type retryNotice struct {
	to      io.Writer
	timeout time.Duration
	mu      sync.Mutex
	last    time.Time
}

func (r *retryNotice) show(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.last) < 10*time.Second {
		return
	}
	r.last = time.Now()
	fmt.Fprintf(r.to, "segmentbuild: S3 is asked again, until --timeout %s is over: %s\n", r.timeout, err)
}

// open opens a location; the context ends with the command's time-out.
func (p *place) open(e *env, location string) (context.Context, context.CancelFunc, objects.Location, error) {
	ctx, cancel := context.WithTimeoutCause(e.ctx, p.Timeout, timeoutError(p.Timeout))
	store, err := objects.Open(ctx, location, p.s3(e))
	if err != nil {
		cancel()
		return nil, nil, nil, usageError{err}
	}
	return ctx, cancel, store, nil
}

// timeoutError is why a command's context ended.
type timeoutError time.Duration

func (t timeoutError) Error() string {
	return fmt.Sprintf("not done after --timeout %s", time.Duration(t))
}
func (t timeoutError) Unwrap() error { return context.DeadlineExceeded }

// usageError is a fault of the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// hinted adds what to do about an error.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// guardError is a publish that the guard refused.
type guardError struct{ error }

func (g guardError) Unwrap() error { return g.error }

// run is the program. It returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, rawStdout, rawStderr io.Writer) int {
	exited := false
	stdout, stderr := console.NewWriter(rawStdout), console.NewWriter(rawStderr)
	parser, err := kong.New(&cli{}, kong.Name("segmentbuild"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { exited = true }),
		kong.Vars{"version": toolVersion()}, kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110}))
	if err != nil {
		return fail(stderr, err)
	}
	parsed, err := parser.Parse(args)
	if exited { // help or version has been printed
		return statusDone
	}
	if err != nil {
		return fail(stderr, hinted{usageError{err}, "segmentbuild --help, or segmentbuild COMMAND --help"})
	}
	e := &env{ctx: ctx, stdin: stdin, stdout: stdout, stderr: stderr}
	if _, err := console.UntilStopped(ctx, patience, func() (struct{}, error) { return struct{}{}, parsed.Run(e) }); err != nil {
		return fail(stderr, err)
	}
	return statusDone
}

// patience is how long a command may take to end after a signal: what it leaves
// half done by then is as good as what a crash leaves.
const patience = 2 * time.Second

// fail says what went wrong and returns its exit status.
func fail(stderr io.Writer, err error) int {
	status, hint := judge(err)
	fmt.Fprintf(stderr, "segmentbuild: error: %s\n", err)
	var own hinted
	if errors.As(err, &own) {
		hint = own.hint
	}
	if hint != "" {
		fmt.Fprintf(stderr, "segmentbuild: hint: %s\n", hint)
	}
	return status
}

// judge is the table from errors to exit statuses, with the usual hint.
func judge(err error) (status int, hint string) {
	var (
		usage   usageError
		plan    *build.PlanError
		bad     *ingest.BadRowsError
		input   *ingest.InputError
		overlap *build.OverlapError
		guard   guardError
		hold    *publish.HoldError
		back    *publish.WithdrawnError
		lease   *publish.LeaseError
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &plan):
		return statusUsage, ""
	case errors.As(err, &bad):
		return statusBadInput, badRowsHint(bad)
	case errors.As(err, &overlap):
		return statusOverlap, "say which segment keeps such users: --precedence FIRST,SECOND,…"
	case errors.As(err, &guard):
		return statusGuard, "if all of this is what you want: --force --reason \"…\"; the bounds are --max-change and its kin, and those of the build file"
	case errors.As(err, &back): // it was rolled back from after the guard had looked
		return statusGuard, "if this is what you want: --force --reason \"…\""
	case errors.As(err, &hold):
		return statusHold, "segmentbuild release-hold --at LOCATION ends it"
	case errors.Is(err, objects.ErrLostRace):
		return statusLostRace, "nothing was lost and nothing is half done: look at what is live now (segmentbuild list), then run again"
	case errors.Is(err, ingest.ErrNoFinalNewline):
		return statusBadInput, "if the file is whole: end its last line, or say --final-newline optional"
	case errors.As(err, &input):
		return statusBadInput, ""
	case errors.As(err, &lease):
		return statusFailure, "a longer --lease"
	case errors.Is(err, context.DeadlineExceeded):
		return statusFailure, "a longer --timeout"
	}
	return statusFailure, ""
}

// badRowsHint says what can be done about bad rows. Nothing tolerates a file of nothing else.
func badRowsHint(bad *ingest.BadRowsError) string {
	for _, f := range bad.Files {
		if f.Rows == 0 {
			return "look at the file, its format and its columns: one without a good row is never left out"
		}
	}
	return "mend the rows, or tolerate them with --max-bad-rows N or N%: they are left out and counted (--bad-rows-to FILE lists them all)"
}

// printJSON writes a report for machines.
func (e *env) printJSON(report any) error {
	out := json.NewEncoder(e.stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(report)
}

// toolVersion is the version that manifests record.
func toolVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "segmentbuild"
	}
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	return "segmentbuild " + version
}
