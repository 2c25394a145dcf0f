package storage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"capper/internal/capping/pebblestore/backup"
	"capper/internal/terminal"
)

// RestoreCommand is `capper restore FILE --to DIR`.
type RestoreCommand struct {
	File            string `arg:"" help:"The archive that capper backup wrote."`
	To              string `placeholder:"DIR" help:"The directory of the store (store.embedded.path), empty or absent. Left out, the archive is checked only."`
	AcceptLostSends bool   `help:"Put it back although the store that was there has later sends, which are given up: their users may be sent to again."`
	JSON            bool   `help:"Answer as JSON, for machines."`
}

// restored is what was done, as --json prints it.
type restored struct {
	File        string    `json:"file"`
	To          string    `json:"to,omitempty"`
	Store       string    `json:"store"`
	MissingFrom time.Time `json:"missing_from"` // sends after it are not known
	Program     string    `json:"program"`
	Files       int       `json:"files"`
	SizeBytes   int64     `json:"size_bytes"`
}

// Help is printed below the flags.
func (c *RestoreCommand) Help() string {
	return "Puts back the embedded store of a service that does not run. The archive is read whole and checked " +
		"before anything is written; " +
		"a directory that is not empty is refused. The service then starts as of the time of the backup, and says " +
		"from when sends are missing."
}

// Run checks the archive and extracts it.
func (c *RestoreCommand) Run(_ context.Context, on *terminal.Streams) error {
	file, err := os.Open(c.File)
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	defer file.Close()
	var m *backup.Manifest
	if c.To == "" {
		m, err = backup.Verify(file)
	} else {
		m, err = backup.Restore(file, c.To, c.AcceptLostSends, time.Now())
	}
	var (
		loss  *backup.LossError
		other *backup.FormatError
	)
	switch {
	case errors.As(err, &loss):
		return terminal.Hinted(err, "bring the newest store back if there is one; to go on without those sends, add "+
			"--accept-lost-sends")
	case errors.Is(err, backup.ErrDamaged), errors.As(err, &other):
		return terminal.WithStatus(terminal.BadInput, err)
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
	on.Say("%s %s: store %s, %d files, %d bytes, by capper %s; sends after %s are not in it",
		c.File, what, done.Store, done.Files, done.SizeBytes, done.Program, done.MissingFrom.Format(time.RFC3339))
	return nil
}
