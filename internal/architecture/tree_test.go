package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// room is one package of the module, as `go list` tells it.
type room struct {
	ImportPath string
	Dir        string
	Imports    []string
	path       string // below the module's
}

// ours are those of the imports that are of this module, by their path below it.
func (r room) ours() (paths []string) {
	module := strings.TrimSuffix(r.ImportPath, r.path)
	for _, imported := range r.Imports {
		if path, ok := strings.CutPrefix(imported, module); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// tree lists every package of the module.
func tree(t *testing.T) []room {
	t.Helper()
	rooms, err := packages()
	require.NoError(t, err)
	require.NotEmpty(t, rooms)
	return rooms
}

// packages asks the go command once for all tests, none of which changes what it returns. The module's
// own path is asked for, as whoever hosts the repository gives it another one.
var packages = sync.OnceValues(func() (rooms []room, err error) {
	module, err := goList("-m")
	if err != nil {
		return nil, err
	}
	all, err := goList("-json=ImportPath,Dir,Imports", module+"/...")
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(all))
	for {
		var r room
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return rooms, nil
		}
		if err != nil {
			return nil, err
		}
		r.path = strings.TrimPrefix(r.ImportPath, module+"/")
		if !slices.Contains(outside, r.path) {
			rooms = append(rooms, r)
		}
	}
})

// outside are packages of the client's module, which is listed with ours where
// both are in one build list.
var outside = []string{"client", "client/api"}

func goList(args ...string) (string, error) {
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	return strings.TrimSpace(string(out)), err
}
