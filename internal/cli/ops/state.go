package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/terminal"
)

// stateFile is the name of the file in which a migration stores its state between two passes.
const stateFile = "state.json"

// The type state is the state of a migration. A file keeps the state between two passes.
type state struct {
	Begun     bool             `json:"begun"`               // this migration has created the store in Redis
	Store     string           `json:"store,omitempty"`     // id of the embedded store; "": not yet known
	IDs       *database.IDs    `json:"ids,omitempty"`       // user ids of the embedded store; nil: dense ids
	Mark      uint64           `json:"mark,omitempty"`      // newest version number (mark) of the copies
	Channels  map[string]uint8 `json:"channels,omitempty"`  // numbers of the channels in the logs
	Finishing string           `json:"finishing,omitempty"` // directory of the store; "": the last pass has not begun
	Finished  *time.Time       `json:"finished,omitempty"`
}

func readState(dir string) (s state, err error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the state of earlier migration passes: %s: %w", filepath.Join(dir, stateFile), err)
	}
	return s, nil
}

func (s *state) write(dir string) error {
	return terminal.WritePrivateFile(filepath.Join(dir, stateFile), func(to io.Writer) error {
		return json.NewEncoder(to).Encode(s)
	})
}

// errAnother returns the error that a store does not belong to this migration.
func (s *state) errAnother(what string) error {
	return terminal.Hinted(fmt.Errorf(
		"directory %s must hold the store of the earlier migration passes, but holds a different store",
		what),
		"use the store of the earlier passes, or migrate this one with another --work to another Redis")
}

// The method "takes" returns an error if the last pass of a migration must not read the store with the given id and
// mark. The argument "mark" is the store's identity mark: a counter that increases while a service uses the store. The
// last pass must read the same store as the earlier passes, and a later version of the store than these passes.
func (s *state) takes(dir, id string, mark uint64) error {
	switch {
	case s.Store == "":
		return nil
	case s.Store != id:
		return s.errAnother(dir)
	case mark <= s.Mark:
		return terminal.Hinted(fmt.Errorf(
			"directory %s holds a store that is older than the copy from the last migration pass",
			dir),
			"name the directory that the service used (store.embedded.path)")
	}
	return nil
}
