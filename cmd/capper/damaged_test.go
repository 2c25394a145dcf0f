package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/terminal"
	"capper/internal/testkit"
)

// What a file that cannot be read holds is not known: nobody says that there is nothing.
func TestNothingIsSaidOfWhatADamagedFileHolds(t *testing.T) {
	t.Parallel()
	segments := filepath.Join(t.TempDir(), "segments")
	publish(t, segments, "new=1-300")
	d := startDecider(t, testkit.NewClockAt(time.Now()), segments, "channels: {push: 1}\nlimits: {default: {daily: "+
		"1}}\naudit: {to: audit}\n")
	d.filter(&client.FilterRequest{MessageID: "m", Channel: "push", Users: []uint32{1, 2}})
	require.NoError(t, d.service.Stop())
	place, damagedFiles := filepath.Join(d.dir, "audit"), 0
	require.NoError(t, filepath.WalkDir(place, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".json") || strings.HasSuffix(path, ".yaml") {
			return err
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		text[len(text)/2] ^= 0xff
		damagedFiles++
		return os.WriteFile(path, text, 0o600)
	}))
	require.NotZero(t, damagedFiles)
	for _, args := range [][]string{{"audit", "user", "1"}, {"audit", "message", "m"},
		{"whatif", "--limits", d.file(), "--segments", segments}} {
		var out, talk bytes.Buffer
		got := run(t.Context(), append(args, "--audit", place), strings.NewReader(""), &out, &talk)
		require.Equal(t, int(terminal.BadInput), got, "%v: %s%s", args, &out, &talk)
		require.Empty(t, out.String(), "%v", args)
		require.Contains(t, talk.String(), "could not be read", "%v", args)
	}
}
