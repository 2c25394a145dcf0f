// Package gate limits callers of the API: it checks their API keys, their rates, and the resources that their calls
// hold.
//
//	call → listener     TLS, allowed host names, number of connections
//	     → Control      key, scope, namespace
//	     → limiter      users per second of the client
//	     → Budgets      memory of the body, users, memory of the response
//	     → pace         minimum rate of the body and of the response
//
// Clients share every Budget fairly. When a budget is exhausted, the server first refuses the client that holds most of
// the budget. When another client needs the budget, the server disconnects a client that has stopped sending or
// reading. A Place records the users and the response memory that the budgets have granted to one call.
//
// The rate limiter counts the users in the calls of each client. The limiter counts in one process alone or, through
// Redis, over all service instances. While Redis fails, each process uses a rate limiter of its own instead of the
// shared rate limiter.
//
// If no API keys are configured, the service accepts loopback listeners only. A loopback listener accepts only requests
// for the names of this machine, so that no foreign web page can call the service from a browser. The service reloads
// TLS certificates when their files change.
package gate
