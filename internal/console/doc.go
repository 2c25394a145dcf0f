// Package console is the service's web console at /console. Its pages show people who send campaigns the past
// decisions, their reasons and the current rules.
//
//	request → server.Beside   host check, request id, metrics                 package server
//	        → frame           session, form, failure, layout, CSV, SVG        package frame
//	        → page            asks the API in the process, says it in words   this package
//	        → API's handler   scope of the key, answer                        package server
//
// The console shows only data of the API, with two exceptions: the counts of the last day (Series) and the versions
// of the policy since the start (Policies), which the process keeps in memory.
//
// The server renders every page completely, so that pages work without scripts. Assets and templates are embedded, at
// most 400 kB in all. A page loads nothing from other sites.
//
// Each page is one file, with its template beside it: the service itself, its limits and pacers, segments and
// generations, campaigns, one user, and the page that tries a campaign without recording anything.
//
// # Outlook
//
// An outlook shows how many of a group of users may receive a message on a channel, now and over the next days, if no
// other message is sent before. The service decides each instant in the same way as a filter call and records nothing,
// at the full cost of that call. The console therefore decides only a sample of a large group, which the page says, and
// keeps each result for a minute.
//
// # Series
//
// A Series holds the counts of the last day for the pictures. It reads existing counters once a second, so decisions
// cost nothing more. Counts before the start of the process are unknown. The last hour is kept by second and the last
// day by minute, for a limited number of counters, in about 4 MB at most.
package console
