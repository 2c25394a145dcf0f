// Package objectstest runs tests with every kind of objects.Location.
package objectstest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/objects/s3test"
)

// OnEveryLocation runs a test once for each implementation of objects.Location. Each run gets a new, empty location.
// The test function gets the location and its name as arguments. The function objects.Open accepts this name.
func OnEveryLocation(t *testing.T, test func(t *testing.T, name string, at objects.Location)) {
	t.Helper()
	names := map[string]func(t *testing.T) string{
		"directory": func(t *testing.T) string { return t.TempDir() + "/not/there/yet" },
		"s3":        func(t *testing.T) string { return "s3://" + s3test.Bucket(t) + "/some/prefix" },
		"s3 root":   func(t *testing.T) string { return "s3://" + s3test.Bucket(t) },
	}
	for kind, newName := range names {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := newName(t)
			test(t, name, Open(t, name))
		})
	}
}

// Open returns the location with the given name. If opening the location fails, the calling test fails.
func Open(t testing.TB, name string) objects.Location {
	t.Helper()
	at, err := objects.Open(t.Context(), name, objects.S3Config{})
	require.NoError(t, err)
	return at
}
