package charts

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	r := renderedOnce(t, "prod", values...)
	return r.text, r.refused
}

// rendered is what Helm makes of some values.
type rendered struct {
	text    []byte
	refused error // the error that Helm reports
	objects []object
	unread  error // the error of reading the objects
}

// renderings holds the renderings so far as functions that return a rendered, by release and values. Many tests look at
// the same renderings, and none changes them.
var renderings sync.Map

// renderedOnce renders the chart as a release, unless a test has rendered the same release with the same values.
func renderedOnce(t *testing.T, release string, values ...string) rendered {
	t.Helper()
	tools, err := Installed()
	require.NoError(t, err)
	key := release
	for _, file := range values {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		key += "\x00" + string(text)
	}
	once, _ := renderings.LoadOrStore(key, sync.OnceValue(func() (r rendered) {
		out, err := tools.command(tools.Render, append([]string{Chart(), release, "messaging"}, values...)...).Output()
		if err != nil {
			r.refused = Explained("helm", err)
			return r
		}
		r.text = out
		r.objects, r.unread = read(out)
		return r
	}))
	return once.(func() rendered)()
}

// render renders the chart, which must be accepted.
func render(t *testing.T, values ...string) *rendering {
	t.Helper()
	return renderAs(t, "prod", values...)
}

func renderAs(t *testing.T, release string, values ...string) *rendering {
	t.Helper()
	r := renderedOnce(t, release, values...)
	require.NoError(t, r.refused)
	require.NoError(t, r.unread, "%s", r.text)
	return &rendering{t: t, text: r.text, objects: r.objects}
}

// read returns the objects of a rendering.
func read(text []byte) (objects []object, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	for {
		var o object
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case o != nil:
			objects = append(objects, o)
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
