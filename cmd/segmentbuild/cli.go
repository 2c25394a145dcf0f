package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
	"capper/internal/version"
)

const description = `Builds segments and sets (groups of users) from user ids, and publishes them to a directory or S3.`

// The type "commands" contains the commands and flags of segmentbuild.
type commands struct {
	Build       buildCommand            `cmd:"" help:"Build segments and sets (groups of users) from files of user ids, and publish them, so that services can load them."`
	Amend       amendCommand            `cmd:"" help:"Replace the users of some published sets (such as suppression lists) without a new build. All segments and all other sets keep their users."`
	List        listCommand             `cmd:"" help:"List the generations (published versions of all segments and sets), and mark the generation that services use."`
	Inspect     inspectCommand          `cmd:"" help:"Show the segments and sets of a generation (a published version), or the content of a bitmap file."`
	Diff        diffCommand             `cmd:"" help:"Show how segments and sets differ between two generations (published versions)."`
	Members     membersCommand          `cmd:"" help:"Check whether users are in a segment or set, or print some users of the segment or set."`
	Export      exportCommand           `cmd:"" help:"Write the ids of all users of a segment or set, as text or as a bitmap."`
	Verify      verifyCommand           `cmd:"" help:"Download a generation (a published version), and check all of its files for damage."`
	Rollback    rollbackCommand         `cmd:"" help:"Make services use an earlier generation (published version of segments and sets) again."`
	ReleaseHold releaseHoldCommand      `cmd:"" name:"release-hold" help:"Let builds publish again after the command 'rollback --hold' has stopped all builds."`
	Gc          gcCommand               `cmd:"" name:"gc" help:"Remove old generations (published versions), and the files that no remaining generation uses."`
	Generate    generateCommand         `cmd:"" help:"Write files with invented users and segments, for tests and demonstrations."`
	Version     terminal.VersionCommand `cmd:"" help:"Print the program's version, commit, commit date and Go version."`
	ShowVersion kong.VersionFlag        `name:"version" help:"Print the version of the program."`
}

// The type place contains the flags for access to a location (directory or bucket).
type place struct {
	objects.S3Flags
	Timeout time.Duration `default:"1h" help:"Maximum duration of the command."`
}

func (p *place) s3(on *terminal.Streams) objects.S3Config {
	return p.Over(objects.S3Config{Patient: true, Retrying: (&retryNotice{on: on, timeout: p.Timeout}).show})
}

// A retryNotice prints a message when the program retries a request to S3, at most one message in ten seconds.
type retryNotice struct {
	on      *terminal.Streams
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
	r.on.Say("S3 is retried until --timeout %s ends: %s", r.timeout, err)
}

// The method "open" opens a location (directory or bucket). The returned context ends at the time limit of the command.
func (p *place) open(ctx context.Context, on *terminal.Streams, address string) (context.Context, context.CancelFunc,
	objects.Location, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Timeout, timeoutError(p.Timeout))
	location, err := objects.Open(ctx, address, p.s3(on))
	if err != nil {
		cancel()
		return nil, nil, nil, terminal.Misuse(err)
	}
	return ctx, cancel, location, nil
}

// timeoutError reports that a command exceeded its time limit.
type timeoutError time.Duration

func (t timeoutError) Error() string {
	return fmt.Sprintf("command did not finish within --timeout %s", time.Duration(t))
}
func (t timeoutError) Unwrap() error { return context.DeadlineExceeded }

// The constant patience is the time that a command has to end normally after a signal. If the command needs more time,
// the program exits. The published segments stay intact even if the program exits during a publish.
const patience = 2 * time.Second

// The function "run" executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := terminal.Program{
		Name: "segmentbuild", Description: description, Version: terminal.Version("segmentbuild"),
		Words: ingest.FormatWords(),
		Last:  terminal.OnHold, Statuses: map[terminal.Status]string{
			terminal.BadInput:  "a build file or an export",
			terminal.Undecided: "segments overlap",
		},
		Patience: patience, Judge: judge,
	}
	return program.Run(ctx, &commands{}, args, stdin, stdout, stderr)
}

// The function "judge" returns the exit status for an error, and the hint below the error.
func judge(err error) (terminal.Status, string) {
	var (
		bad     *ingest.BadRowsError
		input   *ingest.InputError
		overlap *ingest.OverlapError
		hold    *publish.HoldError
		back    *publish.WithdrawnError
		lease   *publish.LeaseError
		accept  *publish.AcceptError
	)
	switch {
	case errors.As(err, &bad):
		return terminal.BadInput, badRowsHint(bad)
	case errors.As(err, &overlap):
		return terminal.Undecided, "choose which segment keeps users in several: --precedence FIRST,SECOND,…"
	case isIDsError(err):
		return terminal.Refused, ""
	case errors.As(err, &back): // a rollback happened after the guard had checked the build
		return terminal.Refused, "if this is intended: --force --reason \"…\""
	case errors.As(err, &accept):
		return terminal.Refused, acceptHint(accept)
	case errors.As(err, &hold):
		return terminal.OnHold, "segmentbuild release-hold --at LOCATION ends the hold"
	case errors.Is(err, objects.ErrLostRace):
		return terminal.LostRace, "nothing was lost or left incomplete: check the live generation (segmentbuild " +
			"list), then run the command again"
	case errors.Is(err, ingest.ErrNoFinalNewline):
		return terminal.BadInput, "if the file is complete, add a line break at its end or use --final-newline " +
			"optional"
	case errors.As(err, &input):
		return terminal.BadInput, ""
	case errors.As(err, &lease):
		return terminal.Failure, "a longer --lease"
	case errors.Is(err, context.DeadlineExceeded):
		return terminal.Failure, "a longer --timeout"
	}
	return terminal.Done, ""
}

// acceptHint returns a hint about a flag --accept that does not match the changes of the build.
func acceptHint(wrong *publish.AcceptError) string {
	if wrong.Live != "" {
		return fmt.Sprintf("if %s was published with --force and services reject it, roll back to the generation "+
			"before it, then build with --accept and --force; otherwise build without the acceptance", wrong.Live)
	}
	return "give the exact change in --accept, or build without it"
}

// statusOf returns the exit status of an error.
func statusOf(err error) terminal.Status {
	if status, _ := judge(err); status != terminal.Done {
		return status
	}
	return terminal.StatusOf(err)
}

// badRowsHint returns a hint about bad rows in the inputs. Even if a flag permits bad rows, the command rejects a file
// in which all rows are bad.
func badRowsHint(bad *ingest.BadRowsError) string {
	for _, f := range bad.Files {
		if f.Rows == 0 {
			return "check the file, its format, its columns and the kind of its ids (--ids uuid, uint64 or text): " +
				"a file without a valid row is always an error"
		}
	}
	return "correct the rows, or skip and count them with --max-bad-rows N or N% (--bad-rows-to FILE lists all)"
}

// toolVersion returns the name and the version of this program. Manifests contain this text.
func toolVersion() string { return "segmentbuild " + version.Current().Version }
