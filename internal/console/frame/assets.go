package frame

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// The variable "own" holds the files that all console pages share: the layout, the style sheet, the script and the
// icon.
//
//go:embed assets
var own embed.FS

const assetPath = Path + "/assets/"

// An asset is a file whose name in the URL contains a hash of its content, so that browsers may cache the file.
type asset struct {
	at    string
	kind  string
	bytes []byte
}

// readAssets returns the assets in a map. The map contains each asset under its file name and under its name in URLs.
func readAssets() (map[string]asset, error) {
	entries, err := own.ReadDir("assets")
	if err != nil {
		return nil, err
	}
	assets := map[string]asset{}
	for _, entry := range entries {
		name := entry.Name()
		if path.Ext(name) == ".html" {
			continue
		}
		bytes, err := own.ReadFile("assets/" + name)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(bytes)
		stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
		served := stem + "-" + hex.EncodeToString(sum[:5]) + ext
		a := asset{assetPath + served, mime.TypeByExtension(ext), bytes}
		assets[name], assets[served] = a, a
	}
	return assets, nil
}

// The method asset returns the URL path of the asset (such as the style sheet) with the given file name.
func (f *Frame) asset(name string) string { return f.assets[name].at }

// serveAsset serves an asset (such as the style sheet) to visitors with and without a session, because the sign-in
// page needs the assets.
func (f *Frame) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := f.assets[r.PathValue("name")]
	if !ok || r.URL.Path != a.at {
		http.Error(w, "The file does not exist.", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(a.bytes)))
	_, _ = w.Write(a.bytes) // a write error means that the client has disconnected
}
