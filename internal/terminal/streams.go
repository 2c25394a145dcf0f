package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// Streams are what a command reads and writes. What it says goes to Out and Err,
// where nothing of it can be obeyed by a terminal.
type Streams struct {
	Program string // the name in front of what is said on Err
	In      io.Reader
	Out     *Writer
	Err     *Writer
}

// Data is standard output for the bytes of a file, as they are.
func (s *Streams) Data() io.Writer { return s.Out.Unwrap() }

// Say writes one line of talk to standard error.
func (s *Streams) Say(format string, args ...any) {
	fmt.Fprintf(s.Err, s.Program+": "+format+"\n", args...)
}

// Warn writes one line of warning to standard error.
func (s *Streams) Warn(text string) { s.Say("warning: %s", text) }

// ErrUnconfirmed says that a command was not told to go on.
var ErrUnconfirmed = errors.New("the command was not confirmed: nothing was done")

// Confirm asks the question on the terminal, and returns nil if the answer is
// yes. Where standard input is no terminal nobody can be asked: that is Misuse,
// and flag is what would have answered.
func (s *Streams) Confirm(ctx context.Context, question, flag string) error {
	if !isTerminal(s.In) {
		return Hinted(Misuse(errors.New(question+" cannot ask for confirmation: standard input is not a "+
			"terminal")), flag+
			" confirms the command")
	}
	fmt.Fprintf(s.Err, "%s: %s [y/N] ", s.Program, question)
	answer, err := UntilStopped(ctx, 0, func() (answer string, err error) {
		_, _ = fmt.Fscanln(s.In, &answer) // an empty line and the end of the input are no yes
		return answer, nil
	})
	if err == nil && answer != "y" && answer != "yes" {
		return ErrUnconfirmed
	}
	return err
}

// isTerminal reports whether a stream is read or written by a person.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
