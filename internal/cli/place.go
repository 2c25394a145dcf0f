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

// Place is where the audit lies, and how it is reached.
type Place struct {
	Audit  string `placeholder:"DIR|s3://…" help:"Location of the audit: a directory or s3://bucket/prefix. Default: audit.to of --config."`
	Config string `placeholder:"FILE" help:"Configuration file of the service; the command uses audit.to, segments.source and segments.s3."`
	objects.S3Flags

	configured *config.Config
}

// S3 is how S3 is reached.
func (p *Place) s3() objects.S3Config {
	var s3 objects.S3Config
	if p.configured != nil {
		s3 = p.configured.Segments.S3
	}
	return p.Over(s3)
}

// read reads the configuration, if one is named.
func (p *Place) read() (err error) {
	if p.Config == "" || p.configured != nil {
		return nil
	}
	if p.configured, err = config.Load(p.Config); err != nil {
		return terminal.Hinted(terminal.WithStatus(terminal.BadInput, err), "capper check-config lists every fault")
	}
	return nil
}

// Location opens the audit's location. One without any object is bad input: nothing was ever recorded
// there.
func (p *Place) location(ctx context.Context) (objects.Location, error) {
	if err := p.read(); err != nil {
		return nil, err
	}
	if p.Audit == "" && p.configured != nil {
		p.Audit = p.configured.Audit.To
	}
	if p.Audit == "" {
		return nil, terminal.Hinted(terminal.Misuse(errors.New("the location of the audit is unknown: set --audit, "+
			"or --config with a file that contains audit.to")),
			"to record an audit, add audit: {to: var/audit} to the configuration of the service")
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

// archive opens the audit for reading.
func (p *Place) archive(ctx context.Context) (*archive.Archive, error) {
	at, err := p.location(ctx)
	if err != nil {
		return nil, err
	}
	return archive.New(at, config.ParsePolicy), nil
}

// damaged is what a command that reads ends with when files could not be read: what it
// has printed is what the others hold.
func damaged(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return terminal.Hinted(terminal.WithStatus(terminal.BadInput, fmt.Errorf("%d audit files could not be read: %w",
		len(faults), errors.Join(faults...))),
		"capper audit verify lists all damaged files")
}
