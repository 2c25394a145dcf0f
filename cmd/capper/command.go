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

// commands lists the commands and flags of capper.
type commands struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version of the program."`

	Serve       serveCommand            `cmd:"" help:"Serve the API until SIGTERM or Ctrl-C."`
	CheckConfig checkCommand            `cmd:"" name:"check-config" help:"Check a configuration file and report every fault in it."`
	Doctor      ops.DoctorCommand       `cmd:"" help:"Check the configuration, store, segments and machine of a service, and suggest fixes."`
	Size        ops.SizeCommand         `cmd:"" help:"Estimate the memory, processors, network and disks that a load needs."`
	Filter      filterCommand           `cmd:"" help:"Decide which users of an audience may receive a message, and record the sends."`
	Release     releaseCommand          `cmd:"" help:"Give back recorded sends that were not delivered, so that they no longer count."`
	Import      ops.ImportCommand       `cmd:"" help:"Record sends that another system made, at their original times."`
	Messages    cli.MessagesCommand     `cmd:"" help:"List recent messages, or show the counts of one message."`
	Count       countCommand            `cmd:"" help:"Count an audience by segment and set; with --channel, also count users who could receive a message now."`
	Segments    segmentsCommand         `cmd:"" help:"List the segments and sets of the generation in use."`
	Set         setCommands             `cmd:"" help:"Add users to sets or remove them, and list these changes."`
	Lookup      lookupCommand           `cmd:"" help:"Show the segment and sets that users belong to."`
	IDs         idsCommand              `cmd:"" name:"ids" help:"Print the image of each user id: the number by which the store sorts users."`
	Explain     explainCommand          `cmd:"" help:"Explain why a user is allowed or capped."`
	Limits      limitsCommand           `cmd:"" help:"Show the limits in force."`
	Pace        cli.PaceCommand         `cmd:"" help:"Copy lines to standard output at the rate that a pacer permits."`
	Pacers      cli.PacersCommand       `cmd:"" help:"Show the permits that pacers have granted, or reset a pacer."`
	Erase       eraseCommand            `cmd:"" help:"Erase the recorded sends of users."`
	Backup      ops.BackupCommand       `cmd:"" help:"Write an archive of the embedded store of a running service."`
	Restore     ops.RestoreCommand      `cmd:"" help:"Check an archive, and restore the embedded store from it."`
	Migrate     ops.MigrateCommand      `cmd:"" help:"Copy the records of an embedded store to Redis while the service runs."`
	Store       storeCommands           `cmd:"" help:"Accept the loss of records by the store of a running service."`
	Status      statusCommand           `cmd:"" help:"Show the state of a running service."`
	Healthcheck ops.HealthcheckCommand  `cmd:"" help:"Check the health of the service on this machine; its configuration names the address."`
	Audit       cli.AuditCommands       `cmd:"" help:"Read the audit, the record of all decisions."`
	Pressure    cli.PressureCommand     `cmd:"" help:"Show how many messages people get, who is at a limit, and which campaigns use the slots."`
	Whatif      cli.WhatIfCommand       `cmd:"" help:"Replay recorded calls to show the effect of other limits or other segments."`
	Version     terminal.VersionCommand `cmd:"" help:"Print the version, the commit, its date and the Go version of the program."`
}

const description = `Frequency capping: decides, before a send, who may still receive a message.

The API key, where the service asks for one, is the environment variable CAPPER_API_KEY.`

// patience is the time that a command has after a signal to write the answers that it has received.
const patience = 5 * time.Second

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := terminal.Program{
		Name: "capper", Description: description, Version: terminal.Version("capper"),
		Words: ingest.FormatWords(),
		Last:  terminal.Undecided, Beyond: []terminal.Status{terminal.Findings}, Statuses: map[terminal.Status]string{
			terminal.BadInput:  "a configuration or an audience",
			terminal.Undecided: "run again with the same message id",
			terminal.Findings:  "findings of audit verify, import --verify and doctor",
		},
		Patience: patience, Servers: []string{"serve"}, Judge: judge,
	}
	return program.Run(ctx, &commands{}, args, stdin, stdout, stderr)
}

// judge returns the exit status and the hint for an error of the service.
func judge(err error) (terminal.Status, string) {
	if client.HasCode(err, client.CodeInvalidRequest) || client.HasCode(err, client.CodeTooLarge) {
		return terminal.Usage, ""
	}
	return terminal.Done, ""
}
