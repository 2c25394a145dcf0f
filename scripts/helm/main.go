// Command helm renders a Helm chart with the engine of Helm, in the same way as `helm template`. Command helm also
// checks the values against the schema of the chart.
//
//	helm CHART RELEASE NAMESPACE [VALUES…]
//
// Command helm is a separate Go module, because no other code needs Helm. Command helm uses only the engine of Helm,
// because a build of the whole Helm program takes minutes. The target `make chart` runs the real Helm program on the
// same chart.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: helm CHART RELEASE NAMESPACE [VALUES…]")
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, file := range args[3:] {
		more, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		values = chartutil.CoalesceTables(more, values) // values in later files win
	}
	release := chartutil.ReleaseOptions{Name: args[1], Namespace: args[2], IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		text := strings.TrimSpace(rendered[name])
		if text == "" || path.Base(name) == "NOTES.txt" || strings.HasSuffix(name, ".tpl") {
			continue
		}
		fmt.Fprintf(out, "---\n# Source: %s\n%s\n", name, text)
	}
	return nil
}
