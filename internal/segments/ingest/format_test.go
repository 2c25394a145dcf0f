package ingest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/ingest/format"
)

func TestEveryFormatIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]Format{}
	for _, r := range formatReaders() {
		require.NotEmpty(t, r.format)
		require.NotEmpty(t, r.title, r.format)
		require.NotNil(t, r.starts, "nothing recognises %s by its content", r.format)
		require.NotNil(t, r.read, "nothing reads %s", r.format)
		require.NotEmpty(t, r.extensions, r.format)
		for _, extension := range r.extensions {
			require.NotContains(t, seen, extension, "two formats have the extension")
			seen[extension] = r.format
		}
	}
}

// TestEveryFormatHasAnExport checks that every format has an export, because the tests of truncated,
// damaged and compressed files use the exports.
func TestEveryFormatHasAnExport(t *testing.T) {
	t.Parallel()
	var exported []Format
	for _, e := range exports() {
		head := e.content[:format.HeadBytes]
		byName, known := readerOf(file{name: e.name}, nil)
		require.True(t, known, e.name)
		byContent, known := readerOf(file{name: "export"}, head)
		require.True(t, known, e.name)
		require.Equal(t, byName.format, byContent.format, "%s is not recognised by its content", e.name)
		exported = append(exported, byName.format)
	}
	for _, format := range formats() {
		require.Contains(t, exported, format, "exports has no file of the format")
		asked, known := readerOf(file{name: "a.csv", input: Input{Format: format}}, nil)
		require.True(t, known)
		require.Equal(t, format, asked.format)
	}
	require.False(t, slices.Contains(formats(), auto))
	_, known := readerOf(file{name: filepath.Join("x", "a.csv"), input: Input{Format: "xml"}}, nil)
	require.False(t, known)
}

func TestFormatsAreInDocuments(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/segmentbuild.md")
	require.NoError(t, err)
	for _, r := range formatReaders() {
		_, rest, found := strings.Cut(string(document), "\n| "+r.title+" | ")
		require.True(t, found, "docs/segmentbuild.md: the table of inputs has no row for %s", r.title)
		recognised, _, _ := strings.Cut(rest, "|")
		for _, extension := range r.extensions {
			require.Contains(t, recognised, "`."+extension+"`", "docs/segmentbuild.md: the row of %s", r.title)
		}
	}
}
