package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
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

// tree lists every package of the module. The module's own path is asked for,
// as whoever hosts the repository gives it another one.
func tree(t *testing.T) []room {
	t.Helper()
	module := goList(t, "-m")
	decoder := json.NewDecoder(strings.NewReader(goList(t, "-json=ImportPath,Dir,Imports", module+"/...")))
	var rooms []room
	for {
		var r room
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, rooms)
			return rooms
		}
		require.NoError(t, err)
		r.path = strings.TrimPrefix(r.ImportPath, module+"/")
		if !slices.Contains(outside, r.path) {
			rooms = append(rooms, r)
		}
	}
}

// outside are packages of the client's module, which is listed with ours where
// both are in one build list.
var outside = []string{"client", "client/api"}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
