package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/server"
	"capper/internal/server/wire"
)

// TestEvery503SaysWhenToAskAgain checks that every answer with status 503 has a Retry-After header: for each code and
// each 503 in the API's description. The function requireContract checks the header in all other tests.
func TestEvery503SaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	found := 0
	for _, code := range api.Codes() {
		if code.Status() != http.StatusServiceUnavailable {
			require.Zero(t, wire.NewFailure(code, "why").RetryAfter, code)
			continue
		}
		found++
		require.Equal(t, time.Second, wire.NewFailure(code, "why").RetryAfter, code)
		require.Equal(t, time.Second, wire.FieldFailure(code, "field", "why").RetryAfter, code)
	}
	require.Equal(t, 2, found)

	doc, err := openapi3.NewLoader().LoadFromData(server.OpenAPI())
	require.NoError(t, err)
	described := 0
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
				answer := operation.Responses.Status(status)
				if answer == nil {
					continue
				}
				described++
				header := answer.Value.Headers["Retry-After"]
				require.NotNil(t, header, "%s %s: %d", method, path, status)
				require.True(t, header.Value.Required, "%s %s: %d", method, path, status)
			}
		}
	}
	require.Greater(t, described, 40)
}

// TestNo503IsMadeElsewhere checks that only the constructors of failures create answers with status 503, because they
// set Retry-After.
func TestNo503IsMadeElsewhere(t *testing.T) {
	t.Parallel()
	read := 0
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			path == "failure/failure.go" {
			return err
		}
		read++
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if made, ok := n.Type.(*ast.SelectorExpr); ok {
					require.NotEqual(t, "Failure", made.Sel.Name, "%s makes a failure by itself", path)
				}
			case *ast.CallExpr:
				for _, arg := range n.Args {
					if status, ok := arg.(*ast.SelectorExpr); ok {
						require.NotEqual(t, "StatusServiceUnavailable", status.Sel.Name, "%s answers 503 by itself",
							path)
					}
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, read, 50)
}

// TestCallsThatNothingAnswersYetAndNever checks that a retry is suggested only when it can help: a generation may
// come soon, but a store without counts stays one.
func TestCallsThatNothingAnswersYetAndNever(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, r := range []reply{
		s.call(http.MethodPost, "/v1/segments/lookup", `{"user_ids": [1]}`),
		s.call(http.MethodPost, "/v1/audience/count", `{"audience": "vip"}`),
		s.get("/v1/segments"), s.get("/v1/segments/vip/members"), s.get("/v1/segments/vip/bitmap"),
	} {
		requireRefused(t, r, http.StatusServiceUnavailable, "unavailable",
			badBody{message: "no generation (published version) of the segments is loaded"})
		require.Equal(t, "1", r.header.Get("Retry-After"))
	}
	for _, path := range []string{"/v1/messages", "/v1/messages/a"} {
		r := s.get(path)
		requireRefused(t, r, http.StatusConflict, "conflict",
			badBody{message: "this store does not count messages"})
		require.Empty(t, r.header.Get("Retry-After"))
	}
}
