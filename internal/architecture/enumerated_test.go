package architecture

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/server/gate"
)

// The tests below compare each enumeration of the code with schemas and documents, which cannot range over it.

func TestCalendarsAreInSchemasAndDocuments(t *testing.T) {
	t.Parallel()
	calendars := capping.Calendars()
	want := texts(calendars[:])
	requireEnum(t, want, chartSchema(t), "chart", "definitions", "limits", "items", "properties", "calendar", "enum")
	requireEnum(t, want, openAPI(t), "openapi.yaml", "components", "schemas", "Limit", "properties", "calendar",
		"enum")
	requireWords(t, want, "`%s`", "docs/configuration.md", "| `calendar` |")
	requireWords(t, want, `"%s"`, "client/api/policy.go", "Calendar string ")
	requireWords(t, want, `"%s"`, "client/api/policy.go", "Window   string")
	requireWords(t, want, `"%s"`, "client/api/pressure.go", "Window   string")
	requireWords(t, want, "%s", "internal/server/openapi.yaml", "'Length of a rolling window such as")
	requireWords(t, want, "%s", "internal/server/openapi.yaml", "'A rolling window such as")
	requireWords(t, want, "a %s", "README.md", "- **Limits** ")
}

func TestOutcomesAreInSchemasAndDocuments(t *testing.T) {
	t.Parallel()
	recorded := names(audit.Outcomes())
	requireEnum(t, recorded, openAPI(t), "openapi.yaml", "components", "schemas", "Decision", "properties", "outcome",
		"enum")
	requireWords(t, recorded, `"%s"`, "client/api/user.go", `// "allowed", `)
	outcomes := capping.Outcomes()
	decided := names(outcomes[:])
	require.Subset(t, recorded, decided, "the audit has no outcome of the name")
	require.NotContains(t, decided, "", "outcomeNames lacks an outcome")
	requireWords(t, decided, "`%s`", "docs/api.md", "| `capper_users_total` |")
}

func TestScopesAreInSchemasAndDocuments(t *testing.T) {
	t.Parallel()
	want := texts(gate.Scopes())
	requireEnum(t, want, chartSchema(t), "chart", "properties", "config", "properties", "server", "properties",
		"api_keys", "items", "properties", "scopes", "items", "enum")
	requireWords(t, want, "`%s`", "docs/configuration.md", "| `api_keys` |")
	described := fmt.Sprint(at(t, openAPI(t), "openapi.yaml", "tags"))
	for _, scope := range want {
		require.Contains(t, described, "`"+scope+"`", "openapi.yaml: tags")
	}
}

func TestReasonsOfRefusedSegmentsAreInSchemasAndDocuments(t *testing.T) {
	t.Parallel()
	requireEnum(t, segments.Reasons(), openAPI(t), "openapi.yaml", "components", "schemas", "RefusedGeneration",
		"properties", "reasons", "items", "enum")
	requireWords(t, segments.Reasons(), "`%s`: ", "internal/server/openapi.yaml", "`missing`: the generation lacks")
	requireWords(t, segments.Reasons(), "`%s`", "docs/api.md", "| `capper_segments_refused` |")
}

func names[T fmt.Stringer](members []T) (names []string) {
	for _, member := range members {
		names = append(names, member.String())
	}
	return names
}

func texts[T ~string](members []T) (texts []string) {
	for _, member := range members {
		texts = append(texts, string(member))
	}
	return texts
}

// requireEnum requires the list at a path of a document to have exactly the members.
func requireEnum(t *testing.T, members []string, document any, name string, path ...string) {
	t.Helper()
	list, ok := at(t, document, name, path...).([]any)
	require.True(t, ok, "%s: %v is no list", name, path)
	var found []string
	for _, member := range list {
		found = append(found, member.(string))
	}
	slices.Sort(found)
	members = slices.Clone(members)
	slices.Sort(members)
	assert.Equal(t, members, found, "%s: %v", name, path) // and go on: all places that lack a member are told at once
}

// at returns what a document has at a path.
func at(t *testing.T, document any, name string, path ...string) any {
	t.Helper()
	for _, key := range path {
		object, ok := document.(map[string]any)
		require.True(t, ok, "%s: %v: no object above %q", name, path, key)
		document = object[key]
	}
	return document
}

// requireWords requires the first line that holds a text to hold all members, each in the form of the pattern.
func requireWords(t *testing.T, members []string, pattern, file, text string) {
	t.Helper()
	all := source(t, file)
	_, rest, found := strings.Cut(all, text)
	require.True(t, found, "%s: no line holds %q", file, text)
	line, _, _ := strings.Cut(rest, "\n")
	for _, member := range members {
		assert.Contains(t, text+line, strings.ReplaceAll(pattern, "%s", member), "%s: the line of %q", file, text)
	}
}

func source(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
	require.NoError(t, err)
	return string(raw)
}

func chartSchema(t *testing.T) (schema any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(source(t, "deploy/helm/capper/values.schema.json")), &schema))
	return schema
}

func openAPI(t *testing.T) (description any) {
	t.Helper()
	require.NoError(t, yaml.Unmarshal([]byte(source(t, "internal/server/openapi.yaml")), &description))
	return description
}
