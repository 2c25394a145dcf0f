package charts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// Chart returns the folder of the Helm chart.
func Chart() string { return filepath.Join(Root(), "deploy", "helm", "capper") }

// The type Tools holds the paths of the programs and schemas that the tests of the chart use.
type Tools struct {
	Render      string // renders a chart like helm template; arguments: FOLDER VALUES…
	Kubeconform string
	Schemas     string // folder that WriteKubernetes has filled
}

// Installed installs the missing tools of the chart tests below the folder "build", once for each version. The Go
// toolchain compiles the tools.
var Installed = sync.OnceValues(func() (*Tools, error) {
	out, err := exec.Command(filepath.Join(Root(), "scripts", "kubernetes.sh")).Output()
	if err != nil {
		return nil, Explained("scripts/kubernetes.sh", err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != 5 {
		return nil, fmt.Errorf("scripts/kubernetes.sh must print five paths, got %q", out)
	}
	tools := &Tools{Render: lines[0], Kubeconform: lines[1], Schemas: lines[4]}
	return tools, tools.convert(lines[2], lines[3])
})

// The method "convert" writes the Kubernetes schemas to a folder, unless the folder already exists. The method creates
// the folder atomically, by renaming a temporary folder.
func (t *Tools) convert(kubernetes, operator string) error {
	if _, err := os.Stat(t.Schemas); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(t.Schemas), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(t.Schemas), "making-")
	if err != nil {
		return err
	}
	if err := WriteKubernetes(filepath.Join(kubernetes, "api", "openapi-spec", "swagger.json"), dir); err != nil {
		return err
	}
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		file := filepath.Join(operator, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml")
		if err := WriteCustom(file, dir); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, t.Schemas); err != nil { // another process has already created the folder
		return os.RemoveAll(dir)
	}
	return nil
}

// The method "command" prepares a run of a program with few garbage collections. Each run is short, and garbage
// collections would take a large part of its time.
func (t *Tools) command(program string, args ...string) *exec.Cmd {
	run := exec.Command(program, args...)
	run.Env = append(os.Environ(), "GOGC=1000")
	return run
}

// Validate checks Kubernetes objects against the schemas of their kinds. The error of Validate contains the output of
// the program kubeconform.
func (t *Tools) Validate(objects []byte) error {
	run := t.command(t.Kubeconform, "-strict", "-summary", "-schema-location", t.Schemas+
		"/{{ .ResourceKind }}{{ .KindSuffix }}.json")
	run.Stdin = bytes.NewReader(objects)
	out, err := run.CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubeconform: %w\n%s", err, out)
	}
	return nil
}

// The function Explained returns the error of a program together with the program's output on standard error.
func Explained(program string, err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return fmt.Errorf("%s: %w\n%s", program, err, exit.Stderr)
	}
	return fmt.Errorf("%s: %w", program, err)
}
