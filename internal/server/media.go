package server

import (
	"mime"
	"net/http"
	"strings"

	"capper/client/api"
	"capper/internal/server/wire"
)

// checkMedia refuses a request unless its headers declare a JSON body in UTF-8, either plain or compressed with gzip.
func checkMedia(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	if charset, ok := params["charset"]; err != nil || media != "application/json" || ok && !strings.EqualFold(charset,
		"utf-8") {
		return wire.NewFailure(api.CodeUnsupportedMedia, "Content-Type is %q and must be application/json",
			wire.Clip([]byte(given)))
	}
	encodings := r.Header.Values("Content-Encoding")
	if len(encodings) > 1 || len(encodings) == 1 && !takenEncoding(encodings[0]) {
		return wire.NewFailure(api.CodeUnsupportedMedia, "Content-Encoding is %q, but must name gzip exactly once",
			wire.Clip([]byte(strings.Join(encodings, ", "))))
	}
	return nil
}

// takenEncoding reports whether the service accepts the value of the header Content-Encoding. The function
// takenEncoding ignores the case of the letters.
func takenEncoding(coding string) bool {
	return strings.EqualFold(coding, "gzip") || strings.EqualFold(coding, "identity")
}
