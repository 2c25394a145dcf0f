package cli

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/audit/archive"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/terminal"
)

// The type Place holds the command-line flags that name the location of the audit.
type Place struct {
	Audit  string `placeholder:"DIR|s3://…" help:"Location of the audit (the log of all decisions): a directory or s3://bucket/prefix. Default: audit.to in the file of --config."`
	Config string `placeholder:"FILE" help:"Configuration file of the service, from which the command reads audit.to, segments.source and segments.s3."`
	objects.S3Flags

	configured *config.Config
}

// s3 returns the settings for access to S3, from the configuration and the flags.
func (p *Place) s3() objects.S3Config {
	var s3 objects.S3Config
	if p.configured != nil {
		s3 = p.configured.Segments.S3
	}
	return p.Over(s3)
}

// The method "read" reads the configuration file that the flag --config names, if any.
func (p *Place) read() (err error) {
	if p.Config == "" || p.configured != nil {
		return nil
	}
	if p.configured, err = config.Load(p.Config); err != nil {
		return terminal.Hinted(terminal.WithStatus(terminal.BadInput, err), "capper check-config lists every fault")
	}
	return nil
}

// The method "location" opens the location of the audit. If the location contains no objects, the method "location"
// returns an error with the exit status for bad input: no service has recorded decisions there.
func (p *Place) location(ctx context.Context) (objects.Location, error) {
	if err := p.read(); err != nil {
		return nil, err
	}
	if p.Audit == "" && p.configured != nil {
		p.Audit = p.configured.Audit.To
	}
	if p.Audit == "" {
		return nil, terminal.Hinted(terminal.Misuse(errors.New(
			"the location of the audit is unknown: set --audit, or --config with a file that contains audit.to")),
			"set --config to the configuration of the service, which records an audit if the file contains "+
				"audit: {to: var/audit}")
	}
	at, err := objects.Open(ctx, p.Audit, p.s3())
	if err != nil {
		return nil, terminal.Misuse(err)
	}
	found, err := at.List(ctx, "")
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: the location contains no audit", p.Audit))
	}
	return at, nil
}

// The method "archive" opens the audit for reading.
func (p *Place) archive(ctx context.Context) (*archive.Archive, error) {
	at, err := p.location(ctx)
	if err != nil {
		return nil, err
	}
	return open(ctx, at)
}

// The function "open" returns a reader of the audit records at a location.
func open(ctx context.Context, at objects.Source) (*archive.Archive, error) {
	ids, err := archive.ReadIDs(ctx, at)
	if err != nil {
		return nil, terminal.WithStatus(terminal.BadInput, err)
	}
	return archive.New(at, config.ParsePolicy).Of(ids), nil
}

// The function "damaged" joins the errors about unreadable audit files into one error with the exit status for bad
// input. If all audit files were readable, the function "damaged" returns nil. The output of the command covers only
// the readable files.
func damaged(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return terminal.Hinted(terminal.WithStatus(terminal.BadInput, fmt.Errorf("%d audit files could not be read: %w",
		len(faults), errors.Join(faults...))),
		"capper audit verify lists all damaged files")
}
