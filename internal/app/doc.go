// Package app is the service that `capper serve` runs. It opens the parts that the configuration names, connects
// them, and starts and stops them.
//
// Start and stop consist of steps (see Service.steps). Each step has a time limit and a name, which logs and errors
// show. The steps start in order. When one fails, the earlier ones are undone. A stop undoes them in reverse order:
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
// When a drain exceeds its time limit, it closes the connections. It then waits until the calls have returned from
// the store, which happens at the latest at their own time limit. The store is closed only after all its users have
// ended. When a step that uses the store could not end, the store stays open until the process ends, and the log says
// so. Closing the store during a call could cause a panic, or answers from files that another process has opened
// since.
package app
