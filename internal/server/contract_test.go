package server

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping"
)

// described returns the API's description.
func described(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	require.NoError(t, err)
	return doc
}

// routed returns every call of a router, such as "GET /v1/users/{id}". Profiles are left out, because they serve
// operators in formats of Go's tools.
func routed(h http.Handler) (calls []string) {
	for _, route := range h.(*router).echo.Routes() {
		if !strings.HasPrefix(route.Path, "/debug/pprof/") {
			calls = append(calls, route.Method+" "+template(route.Path))
		}
	}
	return calls
}

// noStore is a store that nobody calls.
type noStore struct{ capping.Store }

func (noStore) ClockTolerance() time.Duration { return 0 }

func TestEveryCallIsDescribed(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Capper: capping.New(noStore{}, nil, new(capping.Policy), time.Now)})
	require.NoError(t, err)
	var calls []string
	for path, item := range described(t).Paths.Map() {
		for method := range item.Operations() {
			calls = append(calls, method+" "+path)
		}
	}
	require.ElementsMatch(t, calls, routed(s.Public()))
	for _, call := range routed(s.Admin()) {
		require.Contains(t, calls, call)
	}
}

// TestEveryErrorIsDescribed checks that the description lists every code under its status with an example, and
// nothing else.
func TestEveryErrorIsDescribed(t *testing.T) {
	t.Parallel()
	doc := described(t)
	listed := doc.Components.Schemas["Error"].Value.Properties["error"].Value.Properties["code"].Value.Enum
	shown := map[api.Code]bool{}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if status < "400" || method == http.MethodHead {
					continue
				}
				media := response.Value.Content.Get("application/json")
				require.NotNil(t, media, "%s %s %s", method, path, status)
				require.Equal(t, "#/components/schemas/Error", media.Schema.Ref)
				require.NotEmpty(t, media.Examples, "%s %s %s", method, path, status)
				for _, example := range media.Examples {
					code := api.Code(example.Value.Value.(map[string]any)["error"].(map[string]any)["code"].(string))
					require.Equal(t, status, strconv.Itoa(code.Status()), "%s under %s of %s %s", code, status, method,
						path)
					shown[code] = true
				}
			}
		}
	}
	require.Len(t, listed, len(api.Codes()))
	page, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	for _, code := range api.Codes() {
		require.Regexp(t, fmt.Sprintf("(?m)^\\| %d \\| `%s` \\|", code.Status(), code), string(page))
		require.Contains(t, listed, string(code))
		require.True(t, shown[code], "no call answers %s", code)
	}
}

// TestEveryStatusIsDescribed derives the possible statuses of a call from the call's properties, and checks the
// description.
func TestEveryStatusIsDescribed(t *testing.T) {
	t.Parallel()
	for path, item := range described(t).Paths.Map() {
		for method, operation := range item.Operations() {
			var got []string
			for status := range operation.Responses.Map() {
				got = append(got, status)
			}
			slices.Sort(got)
			require.Equal(t, statusesOf(method, path), got, "%s %s", method, path)
		}
	}
}

func statusesOf(method, path string) []string {
	api, user, pacer := strings.HasPrefix(path, "/v1/"), strings.HasPrefix(path, "/v1/users/"),
		strings.HasPrefix(path, "/v1/pacers")
	audience := slices.Contains([]string{"/v1/filter", "/v1/release", "/v1/segments/lookup", "/v1/audience/count",
		"/v1/forecast"}, path)
	generation, members, bitmap := audience || strings.HasPrefix(path, "/v1/segments"),
		strings.HasSuffix(path, "/members"), strings.HasSuffix(path, "/bitmap")
	generations := strings.HasPrefix(path, "/v1/generations")
	messages, releases := strings.HasPrefix(path, "/v1/messages") || path == "/v1/activity",
		path == "/v1/messages/{id}/release"
	sets, changes := strings.HasPrefix(path, "/v1/sets"), path == "/v1/sets/{set}/members"
	decisions := strings.HasSuffix(path, "/decisions") || path == "/v1/pressure"
	backup, accept, replay := path == "/v1/backup", path == "/v1/store/accept", path == "/v1/whatif"
	body := method == http.MethodPost || method == http.MethodPut
	open := slices.Contains([]string{"/healthz", "/readyz", "/openapi.yaml"}, path)
	found := map[string]bool{"200": method != http.MethodDelete, "204": method == http.MethodDelete}
	for status, answered := range map[string]bool{
		"400": api, "401": !open, "403": !open,
		"404": strings.Contains(path, "{") || path == "/metrics", // an id with a slash; the admin listener's
		"405": method == http.MethodDelete || backup || accept,   // the admin listener's calls
		"408": body && !backup, "413": body && !backup || members,
		"415": body && !backup,
		"304": bitmap, "409": messages || decisions || backup || accept || changes || replay,
		"410": generation || replay,
		"429": body && !releases && !backup && !accept || user && method == http.MethodGet ||
			members || sets,
		"421": true, "431": true, "500": true,
		"503": method == http.MethodPost || user || pacer || generation || generations || messages || decisions ||
			changes ||
			path == "/healthz" || path == "/readyz",
	} {
		found[status] = answered
	}
	var list []string
	for status, answered := range found {
		if answered {
			list = append(list, status)
		}
	}
	slices.Sort(list)
	return list
}

// TestEveryAuditedActionIsDescribed checks that the documents list every action in the audit lines of the log.
func TestEveryAuditedActionIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	sources, err := filepath.Glob("*.go")
	require.NoError(t, err)
	actions := 0
	for _, file := range sources {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, call := range regexp.MustCompile(`s\.audit\(c, "([^"]+)",`).FindAllStringSubmatch(string(source), -1) {
			actions++
			require.Regexp(t, "(?m)^\\| `"+call[1]+"` \\|", string(page))
		}
	}
	require.Greater(t, actions, 8)
}

// TestTheTableOfNamespacesIsWhole checks that the table of namespaces lists every call of the API.
func TestTheTableOfNamespacesIsWhole(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "**Effect of a namespace on each call.**")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\nChange an API key")
	for path, item := range described(t).Paths.Map() {
		for method := range item.Operations() {
			if method != http.MethodHead {
				require.Contains(t, table, "`"+method+" "+path+"`")
			}
		}
	}
}
