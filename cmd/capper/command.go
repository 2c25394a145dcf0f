package main

import (
	"context"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"capper/client"
	"capper/internal/cli"
	"capper/internal/cli/ops"
	"capper/internal/segments/ingest"
	"capper/internal/terminal"
)

// The type "commands" contains the commands and flags of capper.
type commands struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version of the program."`

	Serve       serveCommand            `cmd:"" help:"Run the service, which answers HTTP calls, until SIGTERM or Ctrl-C."`
	CheckConfig checkCommand            `cmd:"" name:"check-config" help:"Check a configuration file, and report all faults in the file."`
	Doctor      ops.DoctorCommand       `cmd:"" help:"Check a service's configuration, store (database of sends), segments (groups of users) and machine, and suggest fixes."`
	Size        ops.SizeCommand         `cmd:"" help:"Estimate the memory, processors, network and disks that the service needs for a given load."`
	Filter      filterCommand           `cmd:"" help:"Decide which users of an audience may receive a message, and record the sends."`
	Release     releaseCommand          `cmd:"" help:"Cancel recorded sends that did not take place, so that they no longer count towards the users' limits."`
	Import      ops.ImportCommand       `cmd:"" help:"Record sends that another system made, with the original time of each send."`
	Messages    cli.MessagesCommand     `cmd:"" help:"List recent messages, or show for one message how many users were allowed and how many were denied."`
	Count       countCommand            `cmd:"" help:"Count the users of an audience, in total and by segment and set (named group of users). With --channel, also count the users who may receive a message now."`
	Segments    segmentsCommand         `cmd:"" help:"List the segments and sets (groups of users) that the service uses now, with the number of users in each."`
	Set         setCommands             `cmd:"" help:"Add users to a set (named group of users), remove users from a set, list the changes of a set, or repeat changes that the store has lost."`
	Lookup      lookupCommand           `cmd:"" help:"Show the published segment of each given user. With --set, also show whether the user is in the given sets (named groups of users)."`
	IDs         idsCommand              `cmd:"" name:"ids" help:"Print each user id with its image, the 64-bit number by which the store (database of sends) sorts users."`
	Explain     explainCommand          `cmd:"" help:"Explain whether a user may receive a message now, and why or why not."`
	Limits      limitsCommand           `cmd:"" help:"Show the limits that the service applies now."`
	Pace        cli.PaceCommand         `cmd:"" help:"Copy lines from a file to standard output, no faster than a pacer (a named rate limit of the service) permits."`
	Pacers      cli.PacersCommand       `cmd:"" help:"Show the permits that pacers (named rate limits for sending) have granted, or reset a pacer."`
	Erase       eraseCommand            `cmd:"" help:"Erase all recorded sends of the given users."`
	Backup      ops.BackupCommand       `cmd:"" help:"Save the embedded store (the local database) of a running service to an archive file."`
	Restore     ops.RestoreCommand      `cmd:"" help:"Check an archive file that 'capper backup' has written, or restore the embedded store (the local database) from the archive."`
	Migrate     ops.MigrateCommand      `cmd:"" help:"Copy recorded sends, and changes of sets (groups of users), from the embedded store (the local database) to Redis, while the service runs."`
	Store       storeCommands           `cmd:"" help:"Accept that the store has lost recorded sends, so that the running service decides about the affected users again."`
	Status      statusCommand           `cmd:"" help:"Show the state of a running service."`
	Healthcheck ops.HealthcheckCommand  `cmd:"" help:"Check the health of the service on this machine, at the address in its configuration file."`
	Audit       cli.AuditCommands       `cmd:"" help:"Read, check or shorten the audit, which is the log of all decisions."`
	Pressure    cli.PressureCommand     `cmd:"" help:"Show how many messages users receive, how many users are at a limit, and which campaigns send most."`
	Whatif      cli.WhatIfCommand       `cmd:"" help:"Replay recorded calls with other limits or segments, and show how the number of allowed sends changes."`
	Version     terminal.VersionCommand `cmd:"" help:"Print the program's version, commit, commit date and Go version."`
}

const description = `Frequency capping: decides, before a send, who may still receive a message.

If the service requires an API key, set the environment variable CAPPER_API_KEY to this key.`

// The constant patience is the time after a signal in which a command may still write the responses that it has
// received.
const patience = 5 * time.Second

// The function "run" executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := terminal.Program{
		Name: "capper", Description: description, Version: terminal.Version("capper"),
		Words: ingest.FormatWords(),
		Last:  terminal.Undecided, Beyond: []terminal.Status{terminal.Findings}, Statuses: map[terminal.Status]string{
			terminal.BadInput:  "a configuration or an audience",
			terminal.Undecided: "run again with the same message id",
			terminal.Findings:  "faults that audit verify, import --verify or doctor found",
		},
		Patience: patience, Servers: []string{"serve"}, Judge: judge,
	}
	return program.Run(ctx, &commands{}, args, stdin, stdout, stderr)
}

// The function "judge" returns the exit status of the program for an error of the service, or terminal.Done if the
// error determines no exit status.
func judge(err error) (terminal.Status, string) {
	if client.HasCode(err, client.CodeInvalidRequest) || client.HasCode(err, client.CodeTooLarge) {
		return terminal.Usage, ""
	}
	return terminal.Done, ""
}
