package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// A Program describes a command-line program: capper or segmentbuild.
type Program struct {
	Name        string
	Description string // text of --help, which is followed by the list of exit statuses
	Version     string // text of --version
	// Words contains texts by name. The help and the permitted values of flags can refer to such a text as ${name}.
	Words map[string]string
	// The program can end with all exit statuses from 0 to Last, and with the higher statuses in Beyond. Statuses
	// contains additional help texts for some exit statuses.
	Last     Status
	Beyond   []Status
	Statuses map[Status]string
	// Patience is the time after a signal in which a command can finish its work. The commands in Servers have no such
	// time limit, because these commands stop in their own way.
	Patience time.Duration
	Servers  []string
	// The function Judge returns the exit status for an error of the program, and advice for an error without advice.
	// If Judge is nil or returns Done, StatusOf determines the exit status.
	Judge func(error) (Status, string)
}

// Run executes one command line and returns the exit status. The argument "commands" is a pointer to a struct with the
// program's commands, for the library kong. The method Run of each command gets a *Streams, and a context.Context that
// ends after a signal.
func (p Program) Run(ctx context.Context, commands any, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	on := &Streams{Program: p.Name, In: stdin, Out: NewWriter(stdout), Err: NewWriter(stderr)}
	exited := false
	parser, err := kong.New(commands, kong.Name(p.Name), kong.Description(p.Description+"\n\n"+
		describe(p.Last, p.Beyond, p.Statuses)),
		kong.Writers(on.Out, on.Err), kong.Exit(func(int) { exited = true }),
		kong.Vars{"version": p.Version}, kong.Vars(p.Words),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: helpWidth}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decodeDuration)),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(on))
	if err != nil {
		return p.end(on, err)
	}
	command, err := parse(parser, args)
	if exited { // --help or --version has printed its text
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

// The function "repeated" returns an error if the command line has a flag for a single value twice, because the program
// would ignore one of the values.
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

// The method "misused" adds advice and the exit status for wrong usage to an error of the command line. If the error
// already has advice, the method "misused" keeps this advice.
func (p Program) misused(err error) error {
	hint := p.Name + " --help lists the commands, " + p.Name + " COMMAND --help the flags of one"
	if fault := (*kong.ParseError)(nil); errors.As(err, &fault) && fault.Context.Selected() != nil {
		hint = fault.Context.Selected().FullPath() + " --help describes the command"
	}
	return Hinted(Misuse(plainError{err}), cmp.Or(Hint(err), hint))
}

// decodeDuration decodes a duration on the command line, for the library kong.
func decodeDuration(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("duration", &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf("must be a duration such as 500ms, 30s or 2h, got %q; the longest unit is h (hours)", text)
	case d < 0:
		return fmt.Errorf("must not be negative, got %q", text)
	}
	target.SetInt(int64(d))
	return nil
}

// helpWidth is the maximum number of characters in a line of help text.
const helpWidth = 110

// The method "end" prints the error of a command, and the advice of the error. The result is the exit status of the
// program.
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

// The function "indent" indents all lines of a message except the first line and lines that are already indented.
func indent(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if i > 0 && line != "" && line[0] != ' ' {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n")
}

// Further signals have no effect for half a second (the constant "twice") after the first signal. The program timeout,
// for example, sends each signal twice: to the command and to the command's process group.
const twice = 500 * time.Millisecond

// UntilSignal returns a context that ends at the first interrupt or SIGTERM signal. A second signal ends the program
// immediately, if the signal comes more than half a second after the first signal.
func UntilSignal() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(twice, stop) })
	return ctx, stop
}
