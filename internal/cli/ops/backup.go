package ops

import (
	"context"
	"io"
	"time"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// BackupCommand is the command `capper backup --to FILE`.
type BackupCommand struct {
	cli.Service
	To string `required:"" placeholder:"FILE" help:"Archive file (tar) to write. The file appears only when it is complete, and only the file's owner may read it (mode 0600)."`
}

// backedUp is the output of the backup command with --json.
type backedUp struct {
	File      string  `json:"file"`
	SizeBytes int64   `json:"size_bytes"`
	Seconds   float64 `json:"seconds"`
}

// Help returns the help text below the flags.
func (c *BackupCommand) Help() string {
	return "Requests an archive of the embedded store (the local database) from a running service. The archive " +
		"contains every send that was recorded before the command started. The archive ends with a checksum, which " +
		"the command 'capper restore' verifies. The API key needs the scope admin. If the service has an admin " +
		"listener (server.admin_listen), --url must name this listener."
}

// The method Run downloads a backup archive of the service's store and checks that the archive is complete.
func (c *BackupCommand) Run(ctx context.Context, on *terminal.Streams) error {
	api, err := c.Client()
	if err != nil {
		return err
	}
	if err := terminal.CheckTarget(c.To); err != nil {
		return terminal.Misuse(err)
	}
	begun, check, size := time.Now(), database.NewChecker(), new(counter)
	err = terminal.WritePrivateFile(c.To, func(w io.Writer) error {
		if err := api.Backup(ctx, io.MultiWriter(w, check, size)); err != nil {
			return err
		}
		return check.Check()
	})
	if err != nil {
		return c.HintedAdmin(err)
	}
	done := backedUp{c.To, int64(*size), time.Since(begun).Seconds()}
	if c.JSON {
		return terminal.JSON(on.Out, done)
	}
	on.Say("%s: %d bytes in %s; capper restore puts it back", done.File, done.SizeBytes,
		time.Since(begun).Round(time.Millisecond))
	return nil
}

// The type counter is an io.Writer that counts the written bytes, and discards them.
type counter int64

// The method Write adds the length of p to the counter.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
