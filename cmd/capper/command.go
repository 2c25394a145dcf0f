package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"capper/client"
	"capper/internal/config"
	"capper/internal/console"
)

// Exit statuses, as `capper --help` and docs/integration.md document them. 0 to
// 3 are also those of segmentbuild; beyond, each program has its own.
const (
	exitDone    = 0
	exitFailure = 1
	exitUsage   = 2 // a command line that makes no sense, to this program or to the service
	exitInput   = 3 // a configuration or an audience that is missing or has faults

	exitUndecided = 4 // users were left unavailable: run again
)

// commands is the command line.
type commands struct {
	Version kong.VersionFlag `help:"Print the version."`

	Serve       serveCommand   `cmd:"" help:"Serve the API until SIGTERM or Ctrl-C."`
	CheckConfig checkCommand   `cmd:"" name:"check-config" help:"Report every fault of a configuration file."`
	Filter      filterCommand  `cmd:"" help:"Ask who of an audience may be sent to, and record the sends."`
	Release     releaseCommand `cmd:"" help:"Give back sends that did not go out."`
	Explain     explainCommand `cmd:"" help:"Tell why a user is allowed or capped."`
	Status      statusCommand  `cmd:"" help:"Tell the state of a running service."`
}

const description = `Frequency capping: decides, before a send, who may still receive a message.

The API key, where the service asks for one, is the environment variable CAPPER_API_KEY.

Exit status: 0 done, 1 failure, 2 usage, 3 bad input (a configuration or an audience),
4 users were left undecided (run again with the same message id).`

// env is what a command may touch. What it says goes to stdout and stderr,
// where nothing of it can be obeyed by a terminal.
type env struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr *console.Writer
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, rawStdout, rawStderr io.Writer) int {
	exit := -1
	stdout, stderr := console.NewWriter(rawStdout), console.NewWriter(rawStderr)
	parser, err := kong.New(&commands{}, kong.Name("capper"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { exit = code }), kong.Vars{"version": version()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return complain(stderr, err)
	}
	command, err := parser.Parse(args)
	if exit >= 0 { // --help has printed what was asked for
		return exit
	}
	if err != nil {
		fmt.Fprintf(stderr, "capper: error: %v\nhint: capper --help lists commands and flags\n", err)
		return exitUsage
	}
	on := &env{ctx, stdin, stdout, stderr}
	if command.Command() == "serve" { // it stops in an order of its own
		return complain(stderr, command.Run(on))
	}
	_, err = console.UntilStopped(ctx, patience, func() (struct{}, error) { return struct{}{}, command.Run(on) })
	return complain(stderr, err)
}

// patience is how long a command may take after a signal to write what it has been answered.
const patience = 5 * time.Second

// version is that of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// misuse is a command line that contradicts itself or what it names.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// badInput is a configuration or an audience with faults; of an audience
// nothing was sent to the service.
type badInput struct{ error }

func (b badInput) Unwrap() error { return b.error }

func complain(stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "capper: error: %s\n", strings.TrimSpace(err.Error()))
	if hint := console.Hint(err); hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return statusOf(err)
}

// statusOf is the table from errors to exit statuses.
func statusOf(err error) int {
	var faults *config.Faults
	var input badInput
	var wrong misuse
	switch {
	case errors.As(err, &wrong), client.HasCode(err, client.CodeInvalidRequest), client.HasCode(err, client.CodeTooLarge):
		return exitUsage
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return exitFailure
	case errors.As(err, &faults), errors.As(err, &input):
		return exitInput
	case errors.Is(err, errUndecided):
		return exitUndecided
	}
	return exitFailure
}
