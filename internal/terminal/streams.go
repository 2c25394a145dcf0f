package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// The type Streams contains the input and the outputs of a command. The outputs Out and Err escape control characters,
// so that the output cannot control the terminal.
type Streams struct {
	Program string // prefix of each message to Err
	In      io.Reader
	Out     *Writer
	Err     *Writer
}

// Data returns standard output without escaping, so that a command can write the bytes of a file.
func (s *Streams) Data() io.Writer { return s.Out.Unwrap() }

// The method Say prints one line of information to standard error.
func (s *Streams) Say(format string, args ...any) {
	fmt.Fprintf(s.Err, s.Program+": "+format+"\n", args...)
}

// The method Warn prints one line of warning to standard error.
func (s *Streams) Warn(text string) { s.Say("warning: %s", text) }

// ErrUnconfirmed reports that the user did not confirm a command.
var ErrUnconfirmed = errors.New("the command was not confirmed: nothing was done")

// Confirm prints a question on the terminal, and returns nil if the user answers yes. If standard input is not a
// terminal, Confirm returns a Misuse error that names the flag for confirming the command.
func (s *Streams) Confirm(ctx context.Context, question, flag string) error {
	if !isTerminal(s.In) {
		return Hinted(Misuse(errors.New(question+" cannot ask for confirmation: standard input is not a "+
			"terminal")), flag+
			" confirms the command")
	}
	fmt.Fprintf(s.Err, "%s: %s [y/N] ", s.Program, question)
	answer, err := UntilStopped(ctx, 0, func() (answer string, err error) {
		_, _ = fmt.Fscanln(s.In, &answer) // an empty line and the end of the input mean no
		return answer, nil
	})
	if err == nil && answer != "y" && answer != "yes" {
		return ErrUnconfirmed
	}
	return err
}

// isTerminal reports whether the stream is connected to a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
