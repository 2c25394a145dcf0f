package testkit

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// ProgramsVariable is the environment variable with the directory of the programs capper and segmentbuild. The script
// scripts/test.sh builds both programs once for all tests.
const ProgramsVariable = "CAPPER_TEST_BIN"

// ownPrograms is the directory into which this process built the programs, or "" before the build.
var ownPrograms string

var buildPrograms = sync.OnceValues(func() (dir string, err error) {
	if ownPrograms, err = os.MkdirTemp("", "capper-programs-"); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", ownPrograms+"/", "capper/cmd/...")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return ownPrograms, nil
})

// Program returns the path of capper or segmentbuild in the directory that the environment variable CAPPER_TEST_BIN
// names. If the variable is not set, the first call of Program in a process builds both programs.
func Program(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(ProgramsVariable)
	if dir == "" {
		var err error
		if dir, err = buildPrograms(); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

// RemovePrograms removes the programs that this process built. TestMain calls RemovePrograms after the tests of a
// package.
func RemovePrograms() {
	if ownPrograms != "" {
		_ = os.RemoveAll(ownPrograms)
	}
}
