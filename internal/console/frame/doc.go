// Package frame contains the parts that all console pages share: layout, sessions, access to the API, tables with CSV
// export, charts, forms, error pages, and the script that updates pages.
//
// # A page
//
// A Page consists of a path, a template and a function Show. Show makes API calls with Visit.API and Visit.Context,
// and returns a View. For every page, package frame adds the layout, the navigation and the error handling. The
// template of a page defines "main":
//
//	{{define "main"}}
//	<section id="now" data-part> … {{number .Data.Users}} users … {{.When .Data.At}} </section>
//	{{template "picture" (.Picture "hour")}}
//	{{template "table" (.Table "limits")}}
//	<form method="post">{{template "token" .}} … </form>
//	{{end}}
//
// In a Live page, each element that updates itself has an id and the attribute data-part. A script in each page
// replaces the elements that have changed, and keeps focus, selection and scroll position.
//
// Each table is also available as CSV, and each chart as SVG. The address of a table or chart is the address of the
// page with format=csv&table=NAME or format=svg&picture=NAME&theme=dark. For each request of a table or chart, package
// frame calls the function Show of the page. Because a browser requests each table and chart separately, Show should
// avoid expensive API calls that most tables and charts do not need.
//
// # Sessions and access
//
// A page calls the handler of the API within the process, without the network. The context of an API call contains the
// id of the visitor's API key (gate.Inside), and the API checks the current scopes of this key. Because the API checks
// the scopes, the visitor's API key limits everything that a console page can show and do.
//
// A session cookie contains the end time of the session, encrypted with AES-256-GCM. The encryption of the session
// cookie also authenticates the id of the visitor's API key. The secret for the encryption of a session cookie is
// derived from the SHA-256 hash of the API key in the configuration. Every service instance with this API key accepts
// the session of a visitor, and all other instances reject the session. No instance stores sessions. When an operator
// removes or replaces an API key, the console sessions of this key end. A person who can read the configuration file
// can create a console session, so the file is as secret as an API key.
//
// A GET request changes nothing. The console accepts only forms of its own pages. For each form, the console checks the
// origin of the request, and a token that is derived from the visitor's session. Package html/template escapes text
// from users in pages, and the drawing functions escape such text in charts. In a CSV export, a text that a spreadsheet
// would interpret as a formula gets a prefix.
package frame
