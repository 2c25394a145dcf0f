// Package frame is what all pages of the console share: the layout, who visits, what a
// page may ask, tables with their CSV, pictures, forms, failures in plain words, and the
// script that shows a page anew.
//
// # A page
//
// A Page has an address, a template and Show, which asks the API (Visit.API, with
// Visit.Context) and gives a View. The frame adds all else. The template defines "main":
//
//	{{define "main"}}
//	<section id="now" data-part> … {{number .Data.Users}} users … {{.When .Data.At}} </section>
//	{{template "picture" (.Picture "hour")}}
//	{{template "table" (.Table "limits")}}
//	<form method="post">{{template "token" .}} … </form>
//	{{end}}
//
// What changes by itself on a Live page stands in an element with an id and data-part:
// the script swaps those that differ, and leaves focus, selection and scrolling.
//
// Each table is also CSV and each picture SVG, at the page's own address with
// format=csv&table=NAME, or format=svg&picture=NAME&theme=dark: Show runs for these too, so
// it asks nothing that only some of its parts need where that is dear.
//
// # Who visits
//
// Calls go to the API's own handler, in the process, and say in their context whose key
// they are made for (gate.Inside). The API asks for the scopes of that key as they are
// now: a page can show and do what its visitor may, and nothing else. Sessions are package
// session's.
//
// A GET changes nothing. Forms are sent by our own pages only: their origin is looked at,
// and they carry a token that follows from the session. Text of users is escaped by
// html/template in pages, prefixed in CSV where a spreadsheet would calculate, and escaped by
// who draws in pictures.
package frame
