package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments/ingest"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
	"capper/internal/testkit"
)

// withS3 runs the tests with an S3 server.
type withS3 struct{ *testing.M }

func (w withS3) Run() int {
	defer testkit.RemovePrograms()
	return s3test.Main(w.M.Run)
}

func TestMain(m *testing.M) {
	testkit.EndAtOnce()
	testscript.Main(withS3{m}, map[string]func(){"segmentbuild": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			testkit.UseShipped(t, env)
			for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
				"AWS_REGION"} {
				env.Setenv(name, os.Getenv(name))
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"bucket":     newBucket,
			"status":     testkit.WantStatus("segmentbuild"),
			"generation": setGeneration,
			"damage":     damage,
			"exchange":   exchange,
			"expand":     expand,
			"shorten":    shorten,
		},
	})
}

// newBucket NAME: makes a bucket and puts its name into the variable.
func newBucket(ts *testscript.TestScript, _ bool, args []string) {
	name, err := s3test.NewBucket(context.Background())
	ts.Check(err)
	ts.Setenv(args[0], name)
}

// setGeneration VARIABLE LOCATION: puts the name of the live generation of a directory into the variable.
func setGeneration(ts *testscript.TestScript, _ bool, args []string) {
	var current struct{ Generation string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(filepath.Join(args[1], "current.json"))), &current))
	ts.Setenv(args[0], current.Generation)
}

// damage PATTERN: flips the last bit of every file that matches.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		ts.Check(err)
		raw[len(raw)-1] ^= 1
		ts.Check(os.WriteFile(name, raw, 0o644))
	}
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
}

// expand FILE BUCKET: puts the name of a bucket in the place of $B.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "$B", args[1])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// shorten FILE N: cuts a file off after so many bytes, within a line.
func shorten(ts *testscript.TestScript, _ bool, args []string) {
	raw := ts.ReadFile(args[0])
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for n > 0 && raw[n-1] == '\n' {
		n--
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(raw[:n]), 0o644))
}

// exchange FILE A B: swaps two strings in a file.
func exchange(ts *testscript.TestScript, _ bool, args []string) {
	before := ts.ReadFile(args[0])
	after := strings.NewReplacer(args[1], args[2], args[2], args[1]).Replace(before)
	if before == after {
		ts.Fatalf("%s has neither %s nor %s", args[0], args[1], args[2])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(after), 0o644))
}

// A publisher that is slow between reading the live generation and replacing
// it, while another one publishes: the lock of the directory holds it there.
func TestLosesTheRaceWithoutHarm(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	build := func(ids string) (int, string) {
		var stdout, stderr bytes.Buffer
		status := run(t.Context(), []string{"build", "--to", root, "--segment", "vip=-", "--max-change", "1000%"},
			strings.NewReader(ids), &stdout, &stderr)
		return status, stderr.String()
	}
	status, talk := build("1\n")
	require.Equal(t, int(terminal.Done), status, talk)

	lock, err := os.OpenFile(filepath.Join(root, ".current.lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
	type outcome struct {
		status int
		talk   string
	}
	loser := make(chan outcome)
	go func() {
		status, talk := build("1\n2\n")
		loser <- outcome{status, talk}
	}()
	manifests := func() int {
		list, err := filepath.Glob(filepath.Join(root, "generations", "*.json"))
		require.NoError(t, err)
		return len(list)
	}
	require.Eventually(t, func() bool { return manifests() == 2 }, 2*time.Minute, time.Millisecond)
	current := filepath.Join(root, "current.json")
	before, err := os.ReadFile(current)
	require.NoError(t, err)
	var pointer struct{ Generation string }
	require.NoError(t, json.Unmarshal(before, &pointer))
	other := fmt.Sprintf(`{"format_version":1,"generation":%q}`, pointer.Generation) // somebody else
	require.NoError(t, os.WriteFile(current, []byte(other), 0o644))
	require.NoError(t, lock.Close())

	lost := <-loser
	require.Equal(t, int(terminal.LostRace), lost.status, lost.talk)
	require.Contains(t, lost.talk, "segmentbuild: error: another process published segments in the meantime")
	require.Contains(t, lost.talk, "segmentbuild: hint: nothing was lost")
	status, talk = build("1\n2\n")
	require.Equal(t, int(terminal.Done), status, talk)
}

func TestStatusesOfErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want terminal.Status
		err  error
	}{
		{terminal.Failure, errors.New("x")},
		{terminal.Failure, &publish.LeaseError{Length: time.Second}},
		{terminal.Failure, fmt.Errorf("x: %w", context.DeadlineExceeded)},
		{terminal.Usage, (&buildCommand{}).planFault(errors.New("x"))},
		{terminal.BadInput, (&buildCommand{File: "segments.yaml"}).planFault(errors.New("x"))},
		{terminal.BadInput, &ingest.InputError{Err: errors.New("x")}},
		{terminal.BadInput, &ingest.BadRowsError{}},
		{terminal.BadInput, ingest.ErrNoFinalNewline},
		{terminal.BadInput, notThere(objects.ErrNotFound)},
		{terminal.Undecided, &ingest.OverlapError{}},
		{terminal.Refused, refused(&publish.Findings{})},
		{terminal.Refused, &publish.AcceptError{Faults: []string{"x"}}},
		{terminal.Refused, &publish.WithdrawnError{}},
		{terminal.LostRace, objects.ErrLostRace},
		{terminal.OnHold, &publish.HoldError{}},
	} {
		require.Equal(t, c.want, statusOf(fmt.Errorf("y: %w", c.err)), "%T", c.err)
	}
	got, hint := judge(errors.Join(&publish.LeaseError{Length: time.Second}))
	require.Equal(t, terminal.Failure, got)
	require.Equal(t, "a longer --lease", hint)
}

func TestStopsWhenInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	root := t.TempDir()
	status := run(ctx, []string{"build", "--to", root, "--segment", "vip=-"}, strings.NewReader("1\n"), &stdout,
		&stderr)
	require.Equal(t, int(terminal.Failure), status)
	require.Contains(t, stderr.String(), "context canceled")
	require.NoFileExists(t, filepath.Join(root, "current.json"))
}
