package main

import (
	"context"
	"io"
	"time"

	"github.com/alecthomas/kong"

	"capper/client"
	"capper/cmd/capper/campaigns"
	"capper/cmd/capper/doctor"
	"capper/cmd/capper/history"
	"capper/cmd/capper/imports"
	"capper/cmd/capper/paced"
	"capper/cmd/capper/probe"
	"capper/cmd/capper/storage"
	"capper/internal/segments/ingest"
	"capper/internal/terminal"
)

// commands is the command line.
type commands struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	Serve       serveCommand              `cmd:"" help:"Serve the API until SIGTERM or Ctrl-C."`
	CheckConfig checkCommand              `cmd:"" name:"check-config" help:"Report every fault of a configuration file."`
	Doctor      doctor.Command            `cmd:"" help:"Look whether all that a service needs is there, and say what to change."`
	Size        doctor.SizeCommand        `cmd:"" help:"Work out what a load takes: memory, processors, network, disks."`
	Filter      filterCommand             `cmd:"" help:"Ask who of an audience may be sent to, and record the sends."`
	Release     releaseCommand            `cmd:"" help:"Give back sends that did not go out."`
	Import      imports.Command           `cmd:"" help:"Record sends that were made elsewhere, at their own times."`
	Messages    campaigns.MessagesCommand `cmd:"" help:"Tell what became of messages."`
	Count       countCommand              `cmd:"" help:"Count an audience by segment and set; with --channel also who could be sent to now."`
	Segments    segmentsCommand           `cmd:"" help:"List the segments and sets of the generation in use."`
	Lookup      lookupCommand             `cmd:"" help:"Tell which segment users are in, and which sets."`
	Explain     explainCommand            `cmd:"" help:"Tell why a user is allowed or capped."`
	Limits      limitsCommand             `cmd:"" help:"Show the limits in force."`
	Pace        paced.PaceCommand         `cmd:"" help:"Copy lines to standard output at the pace of a pacer."`
	Pacers      paced.PacersCommand       `cmd:"" help:"Show what pacers have given out, or forget it."`
	Erase       eraseCommand              `cmd:"" help:"Erase the recorded sends of users."`
	Backup      storage.BackupCommand     `cmd:"" help:"Write an archive of the embedded store of a running service."`
	Restore     storage.RestoreCommand    `cmd:"" help:"Check an archive, and put the embedded store back."`
	Migrate     storage.MigrateCommand    `cmd:"" help:"Bring what an embedded store has recorded to Redis, while it serves."`
	Store       storeCommands             `cmd:"" help:"Accept what the store of a running service has lost."`
	Status      statusCommand             `cmd:"" help:"Tell the state of a running service."`
	Healthcheck probe.HealthcheckCommand  `cmd:"" help:"Ask the service of this machine whether it is well, as its configuration says where."`
	Audit       history.Commands          `cmd:"" help:"Read the record of decisions."`
	Whatif      history.WhatIfCommand     `cmd:"" help:"Tell what other limits, or other segments, would have come to."`
	Version     terminal.VersionCommand   `cmd:"" help:"Print what was built: version, commit, its date, and Go's version."`
}

const description = `Frequency capping: decides, before a send, who may still receive a message.

The API key, where the service asks for one, is the environment variable CAPPER_API_KEY.`

// patience is how long a command may take after a signal to write what it has been answered.
const patience = 5 * time.Second

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	program := terminal.Program{
		Name: "capper", Description: description, Version: terminal.Version("capper"),
		Words: ingest.FormatWords(),
		Last:  terminal.Undecided, Beyond: []terminal.Status{terminal.Findings}, Statuses: map[terminal.Status]string{
			terminal.BadInput:  "a configuration or an audience",
			terminal.Undecided: "run again with the same message id",
			terminal.Findings:  "of audit verify, import --verify and doctor",
		},
		Patience: patience, Servers: []string{"serve"}, Judge: judge,
	}
	return program.Run(ctx, &commands{}, args, stdin, stdout, stderr)
}

// judge is the status of what the service refused.
func judge(err error) (terminal.Status, string) {
	if client.HasCode(err, client.CodeInvalidRequest) || client.HasCode(err, client.CodeTooLarge) {
		return terminal.Usage, ""
	}
	return terminal.Done, ""
}
