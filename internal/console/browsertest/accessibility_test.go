package browsertest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// good is a page without faults; the faults below replace pieces of it.
const good = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Good</title>
<link rel="icon" href="/x.svg">
<style>
  :root { color-scheme: light dark; }
  body { color: #222; background: #fff; }
  .pale { color: #767676; }
  .skip { position: absolute; left: -999px; } .skip:focus { left: 0; }
  .hint { position: absolute; width: 1px; height: 1px; overflow: hidden; color: #fff; }
  button { padding: 8px; } input, select { border: 1px solid #666; min-height: 24px; }
  nav a { display: inline-block; padding: 8px; }
  @media (prefers-color-scheme: dark) { body { color: #ddd; background: #111; } .pale { color: #777; }
  a { color: #8af; } input, select { border-color: #999; } input::placeholder { color: #aaa; } }
</style></head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><nav aria-label="Pages"><a href="/one">One</a> <a href="/two">Two</a></nav></header>
<main id="content">
<h1>One</h1><h2>Two</h2>
<p>See <a href="/three">the third page</a> for more. <span class="hint">unseen</span></p>
<form><label for="q">Question</label><input id="q" placeholder="such as 42"><label><input type="checkbox">
Only mine</label>
<select aria-label="Channel"><option>push</option></select><button>Ask</button></form>
<img src="/x.svg" alt="A curve that rises">
<table><caption>Sends</caption><thead><tr><th scope="col">Day</th><th scope="col">Sends</th></tr></thead><tbody>
<tr><th scope="row">Monday</th><td>7</td></tr></tbody></table>
<svg role="img" aria-label="A dot" width="80" height="40"><rect width="80" height="40" fill="#f8f8f8"/>
<text x="5" y="20" fill="#333">dot</text></svg>
<ul><li>item</li></ul>
</main>
<footer><p>The end</p></footer>
</body></html>`

// faults lists changes that replace a piece of the good page, each with the expected text.
var faults = []struct{ name, piece, becomes, want string }{
	{"lang", `lang="en"`, ``, "html: has no lang (3.1.1)"},
	{"title", `<title>Good</title>`, ``, "html: has no title (2.4.2)"},
	{"viewport", `<meta name="viewport" content="width=device-width">`, ``, "has no viewport"},
	{"zoom", `width=device-width`, `width=device-width, user-scalable=no`, "cannot be zoomed (1.4.4)"},
	{"id twice", `<h2>Two`, `<h2 id="q">Two`, "its id q is there twice"},
	{"id of nothing", `<label for="q">`, `<label for="w">`, "its for names w, which is not there"},
	{"no h1", `<h1>One</h1>`, ``, "has 0 h1, not one"},
	{"two h1", `<h2>Two</h2>`, `<h1>Two</h1>`, "has 2 h1, not one"},
	{"level left out", `<h2>Two</h2>`, `<h3>Two</h3>`, "level 3 follows one of level 1"},
	{"no main", `<main id="content">`, `<div id="content">`, "has 0 main, not one"},
	{"no landmark", `<footer><p>The end</p></footer>`, `<p>The end</p>`, "p “The end”: is in no landmark"},
	{"navs alike", `<footer>`, `<footer><nav aria-label="Pages"><a href="/">x</a></nav>`, "several nav need names"},
	{"no skip link", `<a class="skip" href="#content">Skip to the content</a>`, ``, "nothing skips to the content"},
	{"skip to nothing", `href="#content"`, `href="#contents"`, "nothing skips to the content"},
	{"nameless button", `<button>Ask</button>`, `<button></button>`, "button “”: has no name (4.1.2)"},
	{"nameless link", `>the third page<`, `><img src="/x.svg" alt=""><`, "a “”: has no name"},
	{"link to here", `>the third page<`, `>here<`, "does not say where it leads"},
	{"no label", `<select aria-label="Channel">`, `<select>`, "has no label (3.3.2)"},
	{"placeholder for a label", `<label for="q">Question</label>`, `Question`, "input#q “”: has no label (3.3.2)"},
	{"label of nothing", `<select aria-label="Channel">`, `<select aria-label="">`, "has no name"},
	{"tabindex", `<button>Ask`, `<button tabindex="3">Ask`, "taken out of order by tabindex 3"},
	{"hidden focus", `<button>Ask`, `<button aria-hidden="true">Ask`, "has the focus and is hidden"},
	{"no role", `<ul>`, `<div tabindex="0">scrolls</div><ul>`, "has the focus without a role and a name"},
	{"unknown role", `<ul>`, `<ul role="chart">`, "there is no role chart"},
	{"link in button", `<button>Ask</button>`, `<button>Ask <a href="/x">x</a></button>`, "is within another control"},
	{"no alt", `alt="A curve that rises"`, ``, "/x.svg has no alt (1.1.1)"},
	{"alt of a file", `A curve that rises`, `x.svg`, "name of a file"},
	{"broken image", `src="/x.svg"`, `src="data:image/png,broken"`, "does not show"},
	{"nameless svg", `role="img" aria-label="A dot"`, `role="img"`, "picture without"},
	{"no caption", `<caption>Sends</caption>`, ``, "has no caption (1.3.1)"},
	{"no scope", `<th scope="row">`, `<th>`, "does not say whether it is of a column or of a row"},
	{"no headers", `<thead><tr><th scope="col">Day</th><th scope="col">Sends</th></tr></thead><tbody>
<tr><th scope="row">Monday</th>`, `<tbody><tr><td>Monday</td>`, "has no header cells"},
	{"empty header", `<th scope="col">Day</th>`, `<th scope="col"></th>`, "an empty header cell"},
	{"item of no list", `<ul><li>item</li></ul>`, `<li>item</li>`, "is an item of no list"},
	{"pale text", `.pale { color: #767676; }`, `footer { color: #777; }`,
		"p “The end”: its text has a contrast of 4.48, less than 4.5 (1.4.3)"},
	{"pale by opacity", `.pale { color: #767676; }`, `footer { opacity: 0.5; }`,
		"p “The end”: its text has a contrast of"},
	{"pale by alpha", `.pale { color: #767676; }`, `footer { color: rgb(0 0 0 / 40%); }`,
		"p “The end”: its text has a contrast of 2.8"},
	{"on a ground", `.pale { color: #767676; }`, `footer { background: #777; }`,
		"p “The end”: its text has a contrast of"},
	{"on a picture", `.pale { color: #767676; }`, `footer { background-image: linear-gradient(red, blue); }`,
		"lies on a picture"},
	{"pale placeholder", `.pale { color: #767676; }`, `::placeholder { color: #999; }`,
		"its placeholder has a contrast of"},
	{"pale edge", `border: 1px solid #666`, `border: 1px solid #ddd`, "its edge has a contrast of"},
	{"no edge", `border: 1px solid #666`, `border: 0`, "has no edge (1.4.11)"},
	{"pale in a picture", `fill="#f8f8f8"`, `fill="#666"`, "text “dot”: its text has a contrast of"},
	{"link by colour", `.pale { color: #767676; }`, `p a { text-decoration: none; }`,
		"told from its sentence by a colour alone"},
	{"small targets", `nav a { display: inline-block; padding: 8px; }`,
		`nav a { font-size: 8px; display: inline-block; width: 10px; height: 10px; }`, "close to a “Two” (2.5.8)"},
	{"style attribute", `<ul>`, `<ul style="color: red">`, "has a style of its own"},
	{"handler", `<ul>`, `<ul onclick="x()">`, "has a script of its own in onclick"},
}

func testFaults(t *testing.T, b *Browser) {
	const picture = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="9"/></svg>`
	documents := map[string]string{"/x.svg": picture, "/": good}
	for _, f := range faults {
		require.Equal(t, 1, strings.Count(good, f.piece), f.name)
		documents["/"+f.name] = strings.Replace(good, f.piece, f.becomes, 1)
	}
	documents["/dark"] = strings.Replace(good, "<footer>", `<footer class="pale">`, 1)
	tab := b.Tab(t, serve(t, documents))
	for _, dark := range []bool{false, true} {
		tab.Dark(dark)
		tab.Open("/")
		require.Empty(t, tab.Faults(), "the good page, dark: %v", dark)
		tab.Open("/dark")
		require.Equal(t, dark, len(tab.Faults()) > 0, "only in the dark: %v", tab.Faults())
	}
	tab.Dark(false)
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			tab.Open("/" + strings.ReplaceAll(f.name, " ", "%20"))
			found := strings.Join(tab.Faults(), "\n")
			for want := range strings.SplitSeq(f.want, "|") {
				require.Contains(t, found, want)
			}
		})
	}
	tab.Misbehaved() // discards the expected faults: pages with their own handler and the broken image
}
