package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets tests run the real program as the command `capper`.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"capper": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
