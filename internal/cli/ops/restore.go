package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/terminal"
)

// RestoreCommand is the command `capper restore FILE --to DIR`.
type RestoreCommand struct {
	File            string `arg:"" help:"Archive file that the command 'capper backup' has written."`
	To              string `placeholder:"DIR" help:"Directory for the restored embedded store (the setting store.embedded.path). The directory must be empty or absent. Without --to, the command only checks the archive."`
	AcceptLostSends bool   `help:"Restore the archive even if the previous store recorded sends after the backup. These sends are lost, so users may receive more messages than their limits allow. Changes of sets after the backup, such as opt-outs, are lost, too."`
	JSON            bool   `help:"Print the result as JSON."`
}

// The type "restored" is the output of the restore command with --json.
type restored struct {
	File        string    `json:"file"`
	To          string    `json:"to,omitempty"`
	Store       string    `json:"store"`
	MissingFrom time.Time `json:"missing_from"` // later sends are not in the archive
	Program     string    `json:"program"`
	Files       int       `json:"files"`
	SizeBytes   int64     `json:"size_bytes"`
}

// Help returns the help text below the flags.
func (c *RestoreCommand) Help() string {
	return "Restores the embedded store (the local database) of a stopped service. The command reads and checks the " +
		"whole archive before it writes anything, and rejects a directory that is not empty. After the restore, the " +
		"service has the sends, and the changes of sets by API calls, from before the backup. The service reports " +
		"the time since which sends are missing. Changes of sets after the backup are lost: users who unsubscribed " +
		"after the backup receive messages until 'capper set replay' repeats these changes from the audit (the log " +
		"of all calls)."
}

// The method Run checks the backup archive. If the command line has the flag --to, Run also extracts the archive to a
// directory.
func (c *RestoreCommand) Run(_ context.Context, on *terminal.Streams) error {
	file, err := os.Open(c.File)
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	defer file.Close()
	var m *database.Manifest
	if c.To == "" {
		m, err = database.Verify(file)
	} else {
		m, err = database.Restore(file, c.To, c.AcceptLostSends, time.Now())
	}
	var (
		loss  *database.LossError
		other *database.FormatError
	)
	switch {
	case errors.As(err, &loss):
		return terminal.Hinted(err, "restore the newest copy of the store if there is one; to continue without "+
			"those sends and changes of sets, add --accept-lost-sends")
	case errors.Is(err, database.ErrDamaged), errors.As(err, &other):
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: %w", c.File, err))
	case err != nil:
		return err
	}
	done := restored{File: c.File, Store: m.Store, MissingFrom: m.At.UTC(), Program: m.Program, Files: len(m.Files),
		SizeBytes: m.Size()}
	if c.To != "" {
		done.To = filepath.Clean(c.To)
	}
	if c.JSON {
		return terminal.JSON(on.Out, done)
	}
	what := "is whole"
	if c.To != "" {
		what = "is in " + done.To
	}
	on.Say("%s %s: store %s, %d files, %d bytes, by capper %s; sends and changes of sets by calls after %s are not in "+
		"it",
		c.File, what, done.Store, done.Files, done.SizeBytes, done.Program, done.MissingFrom.Format(time.RFC3339))
	if c.To != "" {
		on.Say("users who unsubscribed since then would receive messages: run capper set replay --config FILE "+
			"--since %s before a campaign starts", done.MissingFrom.Format(time.RFC3339))
	}
	return nil
}
