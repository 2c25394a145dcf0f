package ingest

import (
	"os"
	"path/filepath"
	"regexp"
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
		if r.magic != "" {
			head := []byte(r.magic + "\x00\xff\x00\xff")
			require.True(t, r.starts(head), r.format)
			require.NoError(t, format.CheckKind(head, r.magic), r.format)
			require.ErrorContains(t, format.CheckKind(head, ""), "give its format, or call it ."+r.extensions[0],
				"format/foreign.go: the text of %s", r.format)
		}
		for _, extension := range r.extensions {
			require.NotContains(t, seen, extension, "two formats have the extension")
			seen[extension] = r.format
		}
	}
}

// TestExtensionsKeepTheirFormats checks that an extension means the same as in earlier versions, because nightly jobs
// have files with these names, and the same in builds and in imports of sends.
func TestExtensionsKeepTheirFormats(t *testing.T) {
	t.Parallel()
	kept := map[string]Format{"txt": Text, "text": Text, "ids": Text, "csv": csv, "tsv": tsv, "tab": tsv,
		"ndjson": NDJSON, "jsonl": NDJSON, "json": NDJSON, "parquet": Parquet, "pq": Parquet, "roaring": roaring,
		"bitmap": roaring, "rbm": roaring}
	for extension, want := range kept {
		r, known := readerOf(file{name: "users." + extension}, nil)
		require.True(t, known, extension)
		require.Equal(t, want, r.format, extension)
	}
	sends := format.SendExtensions()
	for extension, of := range sends {
		require.Equal(t, string(kept[extension]), of, "an import takes .%s for another format than a build", extension)
	}
	for _, extension := range []string{"csv", "tsv", "ndjson", "jsonl", "json", "parquet", "pq"} {
		require.Contains(t, sends, extension)
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
		require.NoError(t, format.CheckKind(head, byName.magic), "the row of %s needs the magic of format/foreign.go",
			byName.format)
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
	refused := regexp.MustCompile(`(?m)^- .segmentbuild. rejects archives .*\.$`).FindString(string(document))
	require.NotEmpty(t, refused)
	for _, r := range formatReaders() {
		require.NotContains(t, refused, r.title, "docs/segmentbuild.md: the formats that are errors")
		_, rest, found := strings.Cut(string(document), "\n| "+r.title+" | ")
		require.True(t, found, "docs/segmentbuild.md: the table of inputs has no row for %s", r.title)
		recognised, _, _ := strings.Cut(rest, "|")
		for _, extension := range r.extensions {
			require.Contains(t, recognised, "`."+extension+"`", "docs/segmentbuild.md: the row of %s", r.title)
		}
	}
}
