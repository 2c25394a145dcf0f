package testkit

import (
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// Script is a command of testscript.
type Script = func(ts *testscript.TestScript, neg bool, args []string)

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
