// Package compose tests the file in deploy/compose. The tests parse the compose file with the library of docker
// compose, and run the services of the compose file without containers. The tests start each server with the command
// and at the address in the compose file. The tests also run the services that end after their work, and check capper's
// configuration file. The tests use their own addresses and folders in place of those in the compose file.
package compose

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Root returns the root folder of the repository. The function Root needs a working directory in the folder of this
// package, and Go runs the tests there.
func Root() string {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		panic(err) // never happens: the process has a working directory
	}
	return root
}

// Service holds the settings of one service in a docker compose file.
type Service struct {
	Command     []string
	Entrypoint  []string
	Image       string
	User        string
	ReadOnly    bool `json:"read_only"`
	Environment map[string]*string
	DependsOn   map[string]struct{ Condition string } `json:"depends_on"`
	HealthCheck struct{ Test []string }
	Networks    map[string]*struct {
		Address string `json:"ipv4_address"`
	}
	Volumes []struct{ Type, Source, Target string }
	Ports   []struct {
		HostIP    string `json:"host_ip"`
		Target    int
		Published string
	}
}

// Load parses a docker compose file and returns its services. The error of Load contains the message that the docker
// compose library printed.
func Load(file string) (map[string]*Service, error) {
	out, err := exec.Command("go", "-C", filepath.Join(Root(), "scripts", "compose"), "run", ".", file).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		return nil, fmt.Errorf("compose: %w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var project struct{ Services map[string]*Service }
	return project.Services, json.Unmarshal(out, &project)
}
