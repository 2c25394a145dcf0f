package testkit

import (
	"errors"
	"os"
	"path/filepath"
)

var root, errRoot = findRoot()

// Root returns the root directory of the repository. If the process did not start in the repository, Root panics.
func Root() string {
	if errRoot != nil {
		panic(errRoot)
	}
	return root
}

// findRoot looks for the file scripts/test.sh in the working directory and in the directories above. Go runs a test in
// the directory of the test's package. The build flag -trimpath removes the directory of the source from the test
// binary.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "test.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("testkit: the process started outside the repository of capper")
		}
	}
}
