package capping

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormatErrorSaysWhatToDo checks that the error names both versions and the action to take.
func TestFormatErrorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  FormatError
		says []string
	}{
		"newer": {FormatError{Marker: "capper log 3", Found: 3, Oldest: 1, Newest: 2},
			[]string{"have format 3, which a newer version", "reads the formats 1 to 2",
				"start the newer version again"}},
		"older": {FormatError{Marker: "capper log 1", Found: 1, Oldest: 3, Newest: 3},
			[]string{"have format 1,", "reads format 3 only", "start a version that supports both"}},
		"another": {FormatError{Marker: "capper log 1 bucket 64", Found: 1, Oldest: 1, Newest: 1,
			Want: "capper log 1 bucket 1"}, []string{"bucket 64", "bucket 1\"", "another build"}},
		"other ids": {FormatError{Marker: "capper log 4 least 4 ids uuid", Found: 4, Oldest: 1, Newest: 3, IDs: "uuid",
			WantIDs: "dense"}, []string{"in the store are uuid, but those of this configuration are dense"}},
		"foreign": {FormatError{Oldest: 1, Newest: 1}, []string{"not a capper store"}},
	} {
		for _, part := range c.says {
			require.ErrorContains(t, &c.err, part, name)
		}
	}
}
