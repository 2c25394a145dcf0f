package clienttest

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/server"
)

// The client names every code of the API.
func TestCodesOfTheAPI(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(server.OpenAPI())
	require.NoError(t, err)
	require.ElementsMatch(t,
		doc.Components.Schemas["Error"].Value.Properties["error"].Value.Properties["code"].Value.Enum, []any{
			client.CodeInvalidRequest, client.CodeUnauthorized, client.CodeForbidden, client.CodeNotFound,
			client.CodeMethodNotAllowed,
			client.CodeTimeout, client.CodeTooLarge, client.CodeUnsupportedMedia, client.CodeRateLimited,
			client.CodeOverloaded,
			client.CodeMisdirected, client.CodeTooManyRecords, client.CodeHeaderTooLarge,
			client.CodeUnavailable, client.CodeInternal, client.CodeGone, client.CodeConflict,
		})
}
