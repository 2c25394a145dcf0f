package otlp

import (
	"fmt"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// checkHeaders refuses headers of the environment that the library would leave out and
// print, as they may be secrets: the error does not have them.
func checkHeaders() error {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		given := os.Getenv(variable)
		if given == "" {
			continue
		}
		for i, pair := range strings.Split(given, ",") {
			name, value, found := strings.Cut(pair, "=")
			value, err := url.PathUnescape(value)
			if !found || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name)) ||
				!httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf("tracing: $%s: pair %d must be name=value with the value percent-encoded, as in "+
					"Authorization=Bearer%%20…, and is not", variable, i+1)
			}
		}
	}
	return nil
}
