package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/internal/cli"
	"capper/internal/config"
	"capper/internal/doctor"
	"capper/internal/sizing"
	"capper/internal/terminal"
)

// DoctorCommand is the command `capper doctor --config FILE`.
type DoctorCommand struct {
	Config    string        `required:"" placeholder:"FILE" help:"Configuration file that the service uses or will use."`
	Users     count         `placeholder:"N" help:"Number of users, such as 270M, for which the command checks that memory and disk are large enough."`
	Sends     float64       `default:"5" help:"Average number of sends per user within the longest window of all limits; used with --users."`
	Density   float64       `default:"1" help:"Number of user ids, divided by the number of integers between the lowest and the highest user id. For example, 0.04 means that 4 of 100 integers are user ids. Used with --users."`
	Publisher bool          `help:"Also check the S3 permissions that segmentbuild needs: the command writes a test object to segments.source and removes the object."`
	MaxAge    time.Duration `default:"168h" help:"Maximum age of the published segments; the command reports older segments."`
	PID       int           `name:"pid" placeholder:"N" help:"Process id of a running service; the command checks the operating system limits of that process. Default: the limits of the command itself."`
	Strict    bool          `help:"Treat every warning as a failure, so that the exit status is not 0."`
	Quiet     bool          `short:"q" help:"Print only warnings, failures and the number of checks, not the checks that succeeded."`
	JSON      bool          `help:"Print the result as JSON."`
}

// The method Run runs all checks of the configuration and prints the findings.
func (c *DoctorCommand) Run(ctx context.Context, on *terminal.Streams) error {
	subject := &doctor.Subject{
		File: c.Config, Users: int64(c.Users), Sends: c.Sends, Density: c.Density, Publisher: c.Publisher,
		MaxAge: c.MaxAge, Process: c.PID, Key: cli.Key(),
	}
	subject.Config, _ = config.Load(c.Config) // the first check reports this error
	report := doctor.Run(ctx, doctor.List(subject))
	looked := len(report.Findings)
	if c.Quiet {
		report.Findings = slices.DeleteFunc(report.Findings, func(f doctor.Finding) bool {
			return f.Result == doctor.OK || f.Result == doctor.Skipped
		})
	}
	var err error
	if c.JSON {
		err = terminal.JSON(on.Out, report)
	} else {
		err = c.print(on, report)
	}
	if err != nil {
		return err
	}
	if failed := report.Counts[doctor.Failed]; failed > 0 {
		return terminal.WithStatus(terminal.Findings, fmt.Errorf("%d of %d checks failed", failed, looked))
	}
	if warned := report.Counts[doctor.Warning]; warned > 0 && c.Strict {
		return terminal.WithStatus(terminal.Findings, fmt.Errorf(
			"%s found: --strict counts warnings as failures", terminal.Count(warned, "warning was", "warnings were")))
	}
	return nil
}

// The method Validate rejects command-line flags with impossible values.
func (c *DoctorCommand) Validate() error {
	load := sizing.Load{Users: max(1, int64(c.Users))}.WithDefaults()
	load.Sends, load.Density = c.Sends, c.Density
	var age, pid error
	if c.MaxAge <= 0 {
		age = fmt.Errorf("max-age: the age must be more than 0, got %s", c.MaxAge)
	}
	if c.PID < 0 {
		pid = fmt.Errorf("pid: must be a process id above 0, got %d", c.PID)
	}
	if err := errors.Join(load.Validate(), age, pid); err != nil {
		return faults(err)
	}
	return nil
}

// The method "print" prints one line for each finding of the doctor. For a warning or a failure, the method "print"
// also prints the recommended change.
func (c *DoctorCommand) print(on *terminal.Streams, report *doctor.Report) error {
	for i := range report.Findings {
		f := &report.Findings[i]
		of := ""
		if f.Of != "" {
			of = f.Of + ": "
		}
		lines := fmt.Sprintf("%-8s %-22s %s%s\n", f.Result, f.Check, terminal.Escape(of), terminal.Escape(f.Seen))
		if f.Change != "" {
			lines += fmt.Sprintf("         change: %s\n         why:    %s\n", terminal.Escape(f.Change),
				terminal.Escape(f.Why))
		}
		if _, err := fmt.Fprint(on.Out, lines); err != nil {
			return err
		}
	}
	n := report.Counts
	_, err := fmt.Fprintf(on.Out, "%d ok, %d warnings, %d failed, %d skipped\n", n[doctor.OK], n[doctor.Warning],
		n[doctor.Failed], n[doctor.Skipped])
	return err
}
