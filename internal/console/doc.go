// Package console is the web console of the service, at /console: what happened, why, and
// what holds now, as pages for people who send campaigns.
//
//	request → server.Beside   host check, request id, metrics                   package server
//	        → frame           session, form, failure, layout, CSV, SVG          frame, session
//	        → page            asks the API in the process, says it in words     pages
//	        → API's handler   scope of the key, answer                          package server
//
// Nothing is shown that the API does not say, but for the last day's counts, which are kept
// in the process (recent), and the versions of the policy since the start.
//
// Pages are rendered on the server, whole without script. Assets and templates are embedded,
// at most 400 kB in all; nothing comes from elsewhere.
package console
