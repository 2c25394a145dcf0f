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
//
// # Outlook
//
// Package outlook says on pages of the console how many of some users may receive something
// on a channel, now and over the next days, if nobody were sent anything before.
//
// The service decides each instant as a filter call would and records nothing, which costs
// as much as the call. So of more than MostUsers a sample is decided, which the page says,
// and what was found is told again for Age, to whom it was found for.
package console
