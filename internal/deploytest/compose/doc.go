// Package compose tests deploy/compose. The library of docker compose reads the file, and the tests run its services
// without containers. Each server is started with its own command at its own address, the one-time services run their
// commands, and capper reads its configuration. Addresses and folders are replaced by those of the test.
package compose

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
)

// Root returns the root folder of the repository. Go runs the tests in the folder of this package.
func Root() string {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		panic(err) // there is no working directory
	}
	return root
}

// Service is what the file says of one.
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

// Load reads a file of compose; the error is what docker compose would say.
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
