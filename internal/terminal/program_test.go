package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// fail is a command that ends with the error.
type fail struct{ err error }

func (f *fail) Run() error { return f.err }

// hang is a command that knows nothing of signals.
type hang struct{ until chan struct{} }

func (h *hang) Run() error { <-h.until; return nil }

type say struct {
	Word  string        `arg:""`
	Pause time.Duration `help:"Pause before the word."`
	Times int           `help:"Number of repetitions."`
	Least uint32        `help:"Least number of repetitions."`
	Share float64       `help:"Share of the words."`
	Loud  bool          `help:"Raised voice."`
	In    string        `enum:",de,en" default:"" help:"Language."`
}

func (s *say) Run(ctx context.Context, on *Streams) error {
	fmt.Fprintln(on.Out, s.Word)
	on.Warn(s.Word)
	return ctx.Err()
}

var errJudged = errors.New("judged")

// execute runs a command line and returns its status, data and talk.
func execute(ctx context.Context, commands any, args ...string) (status int, data, talk string) {
	var stdout, stderr bytes.Buffer
	p := Program{
		Name: "tool", Description: "A tool.", Version: "v7", Last: Undecided,
		Statuses: map[Status]string{Undecided: "ask again"},
		Patience: time.Millisecond, Servers: []string{"serve"},
		Judge: func(err error) (Status, string) {
			if errors.Is(err, errJudged) {
				return LostRace, "the usual"
			}
			return Done, ""
		},
	}
	status = p.Run(ctx, commands, args, strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestErrorsEndWithTheirStatusAndHint(t *testing.T) {
	t.Parallel()
	fault := errors.New("x\n")
	for _, c := range []struct {
		err    error
		status Status
		talk   string
	}{
		{nil, Done, ""},
		{fault, Failure, "tool: error: x\n"},
		{errors.New("x\ny\n  z"), Failure, "tool: error: x\n  y\n  z\n"},
		{Hinted(Misuse(fault), "do y"), Usage, "tool: error: x\ntool: hint: do y\n"},
		{fmt.Errorf("a: %w", WithStatus(BadInput, Hinted(fault, "do y"))), BadInput,
			"tool: error: a: x\ntool: hint: do y\n"},
		{WithStatus(BadInput, fmt.Errorf("read: %w", context.Canceled)), Failure,
			"tool: error: read: context canceled\n"},
		{Misuse(WithStatus(BadInput, fault)), Usage, "tool: error: x\n"},
		{errJudged, LostRace, "tool: error: judged\ntool: hint: the usual\n"},
		{Hinted(errJudged, "its own"), LostRace, "tool: error: judged\ntool: hint: its own\n"},
		{errors.New("\x1b[2J"), Failure, `tool: error: \u001b[2J` + "\n"},
	} {
		var commands struct {
			Fail fail `cmd:""`
		}
		commands.Fail.err = c.err
		status, data, talk := execute(t.Context(), &commands, "fail")
		require.Equal(t, int(c.status), status, "%v", c.err)
		require.Equal(t, c.talk, talk)
		require.Empty(t, data)
	}
	require.NoError(t, Hinted(nil, "y"))
	require.NoError(t, Misuse(nil))
	require.Equal(t, Done, StatusOf(nil))
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	type commands struct {
		Say     say              `cmd:"" help:"Says it."`
		Version kong.VersionFlag `help:"Version."`
	}
	status, data, talk := execute(t.Context(), &commands{}, "say", "a\x07")
	require.Zero(t, status)
	require.Equal(t, `a\u0007`+"\n", data)
	require.Equal(t, `tool: warning: a\u0007`+"\n", talk)

	status, data, talk = execute(t.Context(), &commands{}, "--help")
	require.Zero(t, status)
	require.Empty(t, talk)
	require.Contains(t, strings.Join(strings.Fields(data), " "), "A tool. Exit status: 0 done, 1 failure, 2 usage, "+
		"3 bad input, 4 users left undecided (ask again).")
	status, data, _ = execute(t.Context(), &commands{}, "--version")
	require.Zero(t, status)
	require.Equal(t, "v7\n", data)
	status, data, talk = execute(t.Context(), &commands{}, "say", "a", "--pause", "1h")
	require.Zero(t, status, talk)
	require.Equal(t, "a\n", data)
	status, _, talk = execute(t.Context(), &commands{}, "say", "a", "--times", "-1", "--share", "-0.5")
	require.Zero(t, status, talk)
	all, say := `tool --help lists the commands, tool COMMAND --help the flags of one`, `tool say --help describes the command`
	for _, refused := range []struct {
		args        []string
		fault, hint string
	}{
		{nil, `expected "say"`, all},
		{[]string{"sya"}, `unexpected argument sya, did you mean "say"\?`, all},
		{[]string{"say"}, `expected "<word>"`, say},
		{[]string{"say", "a", "b"}, `unexpected argument b`, say},
		{[]string{"say", "a", "--quick"}, `unknown flag --quick`, say},
		{[]string{"say", "a", "--pause", "5"}, `--pause: must be a duration such as 500ms, 30s or 2h, got "5"; the longest unit is h \(hours\)`, say},
		{[]string{"say", "a", "--pause=-5s"}, `--pause: must not be negative, got "-5s"`, say},
		{[]string{"say", "a", "--pause", "-5s"}, `--pause: must not be negative, got "-5s"`, say},
		{[]string{"say", "a", "--pause"}, `--pause: must have a value`, say},
		{[]string{"say", "a", "--pause", "--loud"}, `--pause: must have a value, got the flag "--loud"; if this text ` +
			`is the value, use --pause="--loud"`, say},
		{[]string{"say", "a", "--times", "x"}, `--times: must be a whole number of at most 64 bits, got "x"`, say},
		{[]string{"say", "a", "--least", "-1"},
			`--least: must be a whole number of at least 0 and at most 32 bits, got "-1"`, say},
		{[]string{"say", "a", "--share", "x"}, `--share: must be a number, got "x"`, say},
		{[]string{"say", "a", "--loud", "-1"}, `unknown flag -1, did you mean "-h"\?`, say},
		{[]string{"say", "a", "--in", "fr"}, `--in must be one of "de","en" but got "fr"`, say},
	} {
		status, data, talk = execute(t.Context(), &commands{}, refused.args...)
		require.Equal(t, int(Usage), status)
		require.Empty(t, data)
		require.Regexp(t, `^tool: error: `+refused.fault+`\ntool: hint: `+refused.hint+`\n$`, talk)
	}
}

// A signal ends commands, but not those that stop in an order of their own.
func TestSignalsEndCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, signalsEndCommands)
}

func signalsEndCommands(t *testing.T) {
	var commands struct {
		Hang  hang `cmd:""`
		Serve hang `cmd:""`
	}
	commands.Hang.until, commands.Serve.until = make(chan struct{}), make(chan struct{})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	status, _, talk := execute(stopped, &commands, "hang")
	require.Equal(t, int(Failure), status)
	require.Contains(t, talk, "tool: error: context canceled")
	ended := make(chan int, 1)
	go func() {
		status, _, _ := execute(stopped, &commands, "serve")
		ended <- status
	}()
	synctest.Wait()
	require.Empty(t, ended, "the command that stops in an order of its own is waited for")
	close(commands.Serve.until)
	require.Zero(t, <-ended)
	close(commands.Hang.until)
}

func TestNobodyIsAskedWithoutATerminal(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	on := &Streams{Program: "tool", In: strings.NewReader("y\n"), Err: NewWriter(&talk)}
	err := on.Confirm(t.Context(), "Erase all?", "--yes")
	require.ErrorContains(t, err, "standard input is not a terminal")
	require.Equal(t, Usage, StatusOf(err))
	require.Equal(t, "--yes confirms the command", Hint(err))
	require.Empty(t, talk.String())
}
