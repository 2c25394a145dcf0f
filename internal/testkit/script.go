package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// A Script is the type of a function that implements a command in a testscript.
type Script = func(ts *testscript.TestScript, neg bool, args []string)

// EndAtOnce sets an option of the race detector, so that programs with the race detector exit immediately. By default,
// such a program waits for a second at its exit, in order to find races in remaining goroutines.
func EndAtOnce() {
	if err := os.Setenv(raceVariable, strings.TrimSpace(os.Getenv(raceVariable)+" atexit_sleep_ms=10")); err != nil {
		panic(err) // os.Setenv fails only if the constant raceVariable is wrong
	}
}

// raceVariable is the name of the environment variable with the options of the race detector.
const raceVariable = "GORACE"

// UseShipped makes the commands of a testscript run the programs without the race detector, like the programs that
// users install. A program with the race detector needs four times the processor time to start.
func UseShipped(t testing.TB, env *testscript.Env) {
	env.Setenv("PATH", filepath.Dir(Program(t, "capper"))+string(os.PathListSeparator)+env.Getenv("PATH"))
}

// WantStatus returns the testscript command `status N args…`. The command `status` runs the program with the arguments,
// and requires the exit status N.
func WantStatus(program string) Script {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		got := "0"
		if err := ts.Exec(program, args[1:]...); err != nil {
			got = strings.TrimPrefix(err.Error(), "exit status ")
		}
		if got != args[0] {
			ts.Fatalf("exit status %s, want %s", got, args[0])
		}
	}
}
