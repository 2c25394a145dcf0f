// Package frame holds the parts that all console pages share: layout, sessions, access to the API, tables with CSV
// export, pictures, forms, error pages, and the script that updates a page.
//
// # A page
//
// A Page has an address, a template and a function Show. Show asks the API (Visit.API, with Visit.Context) and
// returns a View. The frame adds everything else. The template defines "main":
//
//	{{define "main"}}
//	<section id="now" data-part> … {{number .Data.Users}} users … {{.When .Data.At}} </section>
//	{{template "picture" (.Picture "hour")}}
//	{{template "table" (.Table "limits")}}
//	<form method="post">{{template "token" .}} … </form>
//	{{end}}
//
// Each element of a Live page that updates itself has an id and the attribute data-part. The script replaces the
// elements that differ, and keeps focus, selection and scroll position.
//
// Each table is also available as CSV and each picture as SVG, at the page's own address with format=csv&table=NAME or
// format=svg&picture=NAME&theme=dark. Show runs for these formats too. An expensive page therefore avoids API calls
// that only some of its parts need.
//
// # Sessions and access
//
// A page calls the API's own handler in the process. The context of the call names the visitor's key (gate.Inside), and
// the API checks the current scopes of that key. A page can therefore show and do only the things that its visitor may
// do.
//
// A session cookie holds the id of a key, sealed with AES-256-GCM. The secret derives from the SHA-256 of the key in
// the configuration. Every instance with the same key can therefore read the session, no other instance does, and
// nothing is stored. Removing or replacing a key ends its sessions. Whoever can read the configuration file can create
// a session, so the file is as secret as a key.
//
// A GET changes nothing. Only forms of the console's own pages are accepted: the frame checks the origin and a token
// that derives from the session. Text from users is escaped by html/template in pages and by the drawing code in
// pictures. In CSV, text that a spreadsheet would calculate gets a prefix.
package frame
