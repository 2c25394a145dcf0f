// Package pages is the console's pages about the service itself: how it is, what its
// limits are, and how its pacers stand. Each is one file, with its template beside it.
package pages

import "embed"

//go:embed *.html
var files embed.FS
