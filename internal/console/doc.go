// Package console implements the web console of the service, at /console. The pages of the console show past decisions,
// the reasons for the decisions, and the current rules, to people who send campaigns.
//
//	request → server.Beside   host check, request id, metrics                 package server
//	        → frame           session, form, failure, layout, CSV, SVG        package frame
//	        → page            asks the API in the process, says it in words   this package
//	        → API's handler   scope of the key, response                      package server
//
// The console shows data of the API. The console also keeps data in memory: the counts of the last day (Series) and the
// policies since the start of the process (Policies).
//
// The server renders complete pages, so that the console works without scripts. The program contains all assets and
// templates of the console, which have at most 400 kB together. A page of the console loads nothing from other
// websites.
//
// Each page of the console is implemented in one file, with a template in the same directory. The pages of the
// console are about the service itself, limits and pacers, segments and generations, campaigns, and single users. A
// further page of the console tries a campaign without recording sends.
//
// # Outlook
//
// An outlook is a forecast for a group of users. An outlook shows how many users of the group may receive a message on
// a channel, now and over the next days. The forecast assumes that no other message is sent before. For each time of
// the forecast, the service makes the decisions of a filter call about the users of the group, and records nothing. The
// forecast for one time is as much work for the service as one filter call. If the group is large, the forecast is only
// about a sample of the users, and the page says so. The console caches each outlook (forecast for a group of users)
// for a minute.
//
// # Series
//
// A Series holds the counts of decisions of the last day, for the charts of the console. A Series reads the existing
// counters of the service once a second, so that counting does not slow down decisions. A Series contains no counts of
// decisions from before the start of the process. A Series keeps the counts of the last hour by second, and of the last
// day by minute. A Series limits the number of its counters, so that a Series needs at most about 4 MB.
package console
