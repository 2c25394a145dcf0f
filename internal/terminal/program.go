package terminal

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// Program is one of the command lines.
type Program struct {
	Name        string
	Description string // the list of exit statuses is written below it
	Version     string // what --version prints
	// Words are texts that flags refer to as ${name} in their help and enum.
	Words map[string]string
	// Last is the highest of the statuses without a hole that the program ends with, Beyond
	// are those above it, Statuses what its help says of some beyond their meaning.
	Last     Status
	Beyond   []Status
	Statuses map[Status]string
	// Patience is how long a command may take after a signal to put away what it
	// holds. Servers are the commands that stop in an order of their own, however
	// long it takes.
	Patience time.Duration
	Servers  []string
	// Judge is the status of errors of the program's own, and the hint for those
	// that have none. Done: StatusOf tells, as for all when Judge is nil.
	Judge func(error) (Status, string)
}

// Run executes one command line and returns the exit status. commands is a
// pointer to kong's struct of commands. Their Run methods take a
// context.Context, which ends at a signal, and *Streams.
func (p Program) Run(ctx context.Context, commands any, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	on := &Streams{Program: p.Name, In: stdin, Out: NewWriter(stdout), Err: NewWriter(stderr)}
	exited := false
	parser, err := kong.New(commands, kong.Name(p.Name), kong.Description(p.Description+"\n\n"+
		describe(p.Last, p.Beyond, p.Statuses)),
		kong.Writers(on.Out, on.Err), kong.Exit(func(int) { exited = true }),
		kong.Vars{"version": p.Version}, kong.Vars(p.Words),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(on))
	if err != nil {
		return p.end(on, err)
	}
	command, err := parser.Parse(args)
	if exited { // --help or --version has printed what was asked for
		return int(Done)
	}
	if err != nil {
		return p.end(on, p.misused(err))
	}
	if slices.Contains(p.Servers, command.Command()) {
		return p.end(on, command.Run())
	}
	_, err = UntilStopped(ctx, p.Patience, func() (struct{}, error) { return struct{}{}, command.Run() })
	return p.end(on, err)
}

// misused is a mistake in the arguments. The hint of its own, where it has one, goes first.
func (p Program) misused(err error) error {
	hint := Hint(err)
	if hint == "" {
		hint = p.Name + " --help lists the commands, " + p.Name + " COMMAND --help the flags of one"
	}
	return Hinted(Misuse(err), hint)
}

// helpWidth is where lines of help are broken at the latest.
const helpWidth = 110

// end says what went wrong, and what can be done about it, and returns the
// exit status.
func (p Program) end(on *Streams, err error) int {
	if err == nil {
		return int(Done)
	}
	status, hint := Done, ""
	if p.Judge != nil {
		status, hint = p.Judge(err)
	}
	if status == Done {
		status = StatusOf(err)
	}
	on.Say("error: %s", indent(strings.TrimSpace(err.Error())))
	if hint = cmp.Or(Hint(err), hint); hint != "" {
		on.Say("hint: %s", hint)
	}
	return int(status)
}

// indent sets the lines of a message after its first one apart from what other
// messages say; those that are indented stay as they are.
func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// UntilSignal is a context that ends at the first interrupt or SIGTERM. A second
// one ends the program at once, whatever it waits for.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
