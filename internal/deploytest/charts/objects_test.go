package charts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// object is what a manifest says.
type object map[string]any

func (o object) kind() string { return o.text("kind") }
func (o object) name() string { return o.text("metadata", "name") }

// at is what stands below the keys; nil when nothing does.
func (o object) at(keys ...string) any {
	var here any = map[string]any(o)
	for _, key := range keys {
		inner, ok := here.(map[string]any)
		if !ok {
			return nil
		}
		here = inner[key]
	}
	return here
}

func (o object) text(keys ...string) string {
	text, _ := o.at(keys...).(string)
	return text
}

func (o object) object(keys ...string) object {
	inner, _ := o.at(keys...).(map[string]any)
	return inner
}

func (o object) list(keys ...string) (list []object) {
	all, _ := o.at(keys...).([]any)
	for _, one := range all {
		inner, _ := one.(map[string]any)
		list = append(list, inner)
	}
	return list
}

func (o object) number(t *testing.T, keys ...string) int {
	t.Helper()
	switch n := o.at(keys...).(type) {
	case uint64:
		return int(n)
	case int64:
		return int(n)
	}
	require.Failf(t, "not a number", "%v: %v", keys, o.at(keys...))
	return 0
}

// rendering is the chart under some values.
type rendering struct {
	t       *testing.T
	text    []byte
	objects []object
}

// valuesFiles are those of the folder ci, by name without what all of them end with.
func valuesFiles(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(Chart(), "ci", "*-values.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), 5)
	files := map[string]string{}
	for _, file := range found {
		files[strings.TrimSuffix(filepath.Base(file), "-values.yaml")] = file
	}
	return files
}

// helm renders the chart as the release "prod"; the error is what Helm says.
func helm(t *testing.T, values ...string) ([]byte, error) {
	t.Helper()
	return helmAs(t, "prod", values...)
}

func helmAs(t *testing.T, release string, values ...string) ([]byte, error) {
	t.Helper()
	tools, err := Installed()
	require.NoError(t, err)
	out, err := exec.Command(tools.Render, append([]string{Chart(), release, "messaging"}, values...)...).Output()
	if err != nil {
		return nil, Explained("helm", err)
	}
	return out, nil
}

// render renders the chart, which must be accepted.
func render(t *testing.T, values ...string) *rendering {
	t.Helper()
	return renderAs(t, "prod", values...)
}

func renderAs(t *testing.T, release string, values ...string) *rendering {
	t.Helper()
	text, err := helmAs(t, release, values...)
	require.NoError(t, err)
	r := &rendering{t: t, text: text}
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return r
		}
		require.NoError(t, err, "%s", text)
		if o != nil {
			r.objects = append(r.objects, o)
		}
	}
}

func (r *rendering) all(kind string) (found []object) {
	for _, o := range r.objects {
		if o.kind() == kind {
			found = append(found, o)
		}
	}
	return found
}

// workload is the one Deployment or StatefulSet.
func (r *rendering) workload() object {
	r.t.Helper()
	found := append(r.all("Deployment"), r.all("StatefulSet")...)
	require.Len(r.t, found, 1)
	return found[0]
}

// pod is the service's pod, and container the one in it.
func (r *rendering) pod() object { return r.workload().object("spec", "template") }

func (r *rendering) container() object {
	r.t.Helper()
	found := r.pod().list("spec", "containers")
	require.Len(r.t, found, 1)
	return found[0]
}

// configuration is the text of capper.yaml.
func (r *rendering) configuration() string {
	r.t.Helper()
	for _, o := range r.objects {
		for _, data := range []string{"data", "stringData"} {
			if text := o.text(data, "capper.yaml"); text != "" {
				return text
			}
		}
	}
	require.Fail(r.t, "no capper.yaml")
	return ""
}

// written is a file of values with the text.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
