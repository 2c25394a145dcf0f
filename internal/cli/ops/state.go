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

	"capper/internal/terminal"
)

// stateFile is what a migration remembers between its passes, in its directory.
const stateFile = "state.json"

// state is what a migration remembers. The zero value: no pass has begun.
type state struct {
	Begun     bool             `json:"begun"`               // there is a store in Redis, which is this migration's
	Store     string           `json:"store,omitempty"`     // id of the embedded store; "": not known yet
	Mark      uint64           `json:"mark,omitempty"`      // of its newest copy
	Channels  map[string]uint8 `json:"channels,omitempty"`  // numbers in its logs
	Finishing string           `json:"finishing,omitempty"` // its directory; "": the last pass was not begun
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
		return s, fmt.Errorf("read the state of earlier passes: %s: %w", filepath.Join(dir, stateFile), err)
	}
	return s, nil
}

func (s *state) write(dir string) error {
	return terminal.WritePrivateFile(filepath.Join(dir, stateFile), func(to io.Writer) error {
		return json.NewEncoder(to).Encode(s)
	})
}

// errAnother is that a store is not the one that this migration moves.
func (s *state) errAnother(what string) error {
	return terminal.Hinted(fmt.Errorf("directory %s holds a different store from the one that earlier passes copied",
		what),
		"use the store of the earlier passes, or migrate this one with another --work to another Redis")
}

// takes is why a store cannot be that of the last pass: another one, or older than what the passes before have
// brought over. mark is one that it got after the last of its calls.
func (s *state) takes(dir, id string, mark uint64) error {
	switch {
	case s.Store == "":
		return nil
	case s.Store != id:
		return s.errAnother(dir)
	case mark <= s.Mark:
		return terminal.Hinted(fmt.Errorf("directory %s holds an older copy of the store than the last pass read: "+
			"later sends are missing", dir),
			"name the directory that the service used (store.embedded.path)")
	}
	return nil
}
