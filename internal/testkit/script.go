package testkit

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Script is a command of testscript.
type Script = func(ts *testscript.TestScript, neg bool, args []string)

// EndAtOnce has programs with the race detector that the tests start end when they are done: it would
// hold back each for a second, in which goroutines that are left over may still be found out.
func EndAtOnce() {
	if err := os.Setenv(raceVariable, strings.TrimSpace(os.Getenv(raceVariable)+" atexit_sleep_ms=10")); err != nil {
		panic(err) // of a constant name
	}
}

// raceVariable has the options of the race detector.
const raceVariable = "GORACE"

// EndAtOnceIn does the same for a script, which has an environment of its own.
func EndAtOnceIn(env *testscript.Env) { env.Setenv(raceVariable, os.Getenv(raceVariable)) }

// WantStatus is `status N args…` of scripts: it runs the program and requires
// its exit status.
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
