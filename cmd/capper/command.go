package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/alecthomas/kong"

	"capper/internal/config"
)

// Exit statuses, as `capper --help` documents them.
const (
	exitDone    = 0
	exitFailure = 1
	exitUsage   = 2
	exitInput   = 3 // a configuration or an audience with faults

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

Exit statuses: 0 done, 1 failure, 2 usage, 3 a configuration or audience with faults,
4 users were left undecided (run again with the same message id).`

// console is what a command may touch.
type console struct {
	ctx            context.Context
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	exit := -1
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
	return complain(stderr, command.Run(&console{ctx, stdin, stdout, stderr}))
}

// version is that of the module, or of the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// hinted is an error with what its reader can do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// misuse is a command line that contradicts itself or what it names.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

func complain(stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "capper: error: %s\n", strings.TrimSpace(err.Error()))
	var h hinted
	if errors.As(err, &h) {
		fmt.Fprintf(stderr, "hint: %s\n", h.hint)
	}
	var faults *config.Faults
	var audience badAudience
	var wrong misuse
	switch {
	case errors.As(err, &wrong):
		return exitUsage
	case errors.As(err, &faults), errors.As(err, &audience):
		return exitInput
	case errors.Is(err, errUndecided):
		return exitUndecided
	}
	return exitFailure
}
