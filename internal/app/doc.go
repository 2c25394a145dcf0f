// Package app implements the service that `capper serve` runs. Package app opens, connects, starts and stops the
// components that the configuration names.
//
// A start and a stop of the service consist of steps (see Service.steps). Each step of a start or stop has a time
// limit, and a name for logs and errors. A start executes the steps in order. When a step of the start fails, the
// start undoes the earlier steps. A stop of the service undoes all steps of the start in reverse order. The following
// table lists the main steps of a start, each with the action that undoes the step:
//
//	load segments           –
//	open the store          close the store
//	announce the limits     –
//	begin the audit         end the audit
//	build the API           –
//	refresh segments        stop refreshing segments
//	watch the configuration stop watching the configuration
//	listen                  drain the calls
//	ask for calls           ask for no more calls
//
// When the stop action "drain the calls" exceeds its time limit, the action closes the connections of callers. The
// action "drain the calls" then waits until all calls have returned from the store. A store call returns at the latest
// when its API call reaches its own time limit. The stop action "close the store" runs after all actions that use the
// store. If an action that uses the store does not end in time, the store stays open until the process ends. A log line
// then names the action. A call on a closed store could panic, or read from files that another process has opened in
// the meantime.
package app
