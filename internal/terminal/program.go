package terminal

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// Program is a command-line program: capper or segmentbuild.
type Program struct {
	Name        string
	Description string // the list of exit statuses is written below it
	Version     string // the text that --version prints
	// Words are texts that flags refer to as ${name} in their help and enum.
	Words map[string]string
	// Last is the highest status of the program's consecutive exit statuses. Beyond lists the statuses above it.
	// Statuses adds text to the help of some statuses.
	Last     Status
	Beyond   []Status
	Statuses map[Status]string
	// Patience is the time that a command has after a signal to finish its work. Servers lists the commands without
	// this limit, because they stop in their own order.
	Patience time.Duration
	Servers  []string
	// Judge returns the status of the program's own errors, and a hint for errors without one. If Judge is nil or
	// returns Done, StatusOf decides.
	Judge func(error) (Status, string)
}

// Run executes one command line and returns the exit status. commands is a pointer to kong's struct of commands. Each
// command's Run method takes a context.Context, which ends at a signal, and *Streams.
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
	if err == nil {
		err = repeated(command)
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

// repeated returns an error if a flag with one value is given twice, because one of the values would be ignored.
func repeated(command *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, path := range command.Path {
		flag := path.Flag
		if flag == nil || path.Resolved || flag.IsCumulative() || flag.IsBool() {
			continue
		}
		if seen[flag] {
			return fmt.Errorf("--%s: is given twice", flag.Name)
		}
		seen[flag] = true
	}
	return nil
}

// misused returns the error for wrong arguments. A hint of the error itself comes first.
func (p Program) misused(err error) error {
	hint := Hint(err)
	hint = cmp.Or(hint, p.Name+" --help lists the commands, "+p.Name+" COMMAND --help the flags of one")
	return Hinted(Misuse(err), hint)
}

// helpWidth is the longest line of help text, in characters.
const helpWidth = 110

// end prints the error and its hint, and returns the exit status.
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

// indent indents all lines of a message except the first. Lines that are already indented do not change.
func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// UntilSignal returns a context that ends at the first interrupt or SIGTERM. A second signal ends the program at
// once.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
