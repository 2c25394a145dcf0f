package architecture

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages returns the names of the documents for people, relative to the top of the repository.
func pages(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, file := range found {
			name, err := filepath.Rel(filepath.Join("..", ".."), file)
			require.NoError(t, err)
			names = append(names, filepath.ToSlash(name))
		}
	}
	return names
}

// TestLinksOfDocumentsLead checks that every relative link of a document names an existing file, and that its anchor
// is a heading of that page.
func TestLinksOfDocumentsLead(t *testing.T) {
	t.Parallel()
	for _, name := range pages(t) {
		for _, target := range linksOf(source(t, name)) {
			file, anchor, _ := strings.Cut(target, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
				_, err := os.Stat(filepath.Join("..", "..", filepath.FromSlash(to)))
				require.NoError(t, err, "%s links to %s", name, target)
			}
			if anchor != "" && strings.HasSuffix(to, ".md") {
				require.Contains(t, anchorsOf(source(t, to)), anchor, "%s links to %s", name, target)
			}
		}
	}
}

// TestAnchorsAreThoseOfGitHub shows which anchors headings have, and which links count.
func TestAnchorsAreThoseOfGitHub(t *testing.T) {
	t.Parallel()
	page := "# The `set`s: A/B, 2.0\n```\n# no heading\n[x](no-link.md)\n```\n## get_v1 {id}\n### Same\n## Same\n" +
		"[a](b.md#c) `[x](code.md)` [two\nlines](https://example.com) ![p](p.png)\n"
	require.Equal(t, []string{"the-sets-ab-20", "get_v1-id", "same", "same-1"}, anchorsOf(page))
	require.Equal(t, []string{"b.md#c", "p.png"}, linksOf(page))
}

var (
	fences      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeSpans   = regexp.MustCompile("`[^`\n]*`")
	headings    = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	linkTargets = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	unanchored  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(page string) (anchors []string) {
	for _, m := range headings.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		plain := unanchored.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), "")
		first := strings.ReplaceAll(plain, " ", "-")
		anchor := first
		for n := 1; slices.Contains(anchors, anchor); n++ {
			anchor = fmt.Sprintf("%s-%d", first, n)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
}

// linksOf returns the relative links of a page outside code.
func linksOf(page string) (targets []string) {
	text := codeSpans.ReplaceAllString(fences.ReplaceAllString(page, ""), "")
	for _, m := range linkTargets.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], ":") {
			targets = append(targets, m[1])
		}
	}
	return targets
}
