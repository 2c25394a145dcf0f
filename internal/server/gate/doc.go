// Package gate limits callers of the API: it checks their API keys, their rates, and the resources that their calls
// hold.
//
//	call → listener     TLS, allowed host names, number of connections
//	     → Control      key, scope, namespace
//	     → limiter      users per second of the client
//	     → Budgets      memory of the body, users, memory of the answer
//	     → pace         minimum rate of the body and of the answer
//
// Clients share every Budget fairly. When a budget is exhausted, the server first refuses the client that holds most
// of the budget. If a client stops sending or reading, the server disconnects it when another client needs the
// budget. A Place records how many users and how much response memory the budgets have granted to one call.
//
// The rate limiter counts the users in the calls of each client, either in this process alone or, through Redis, over
// all service instances. While Redis fails, the rate limiter that all instances share falls back to a rate limiter in
// this process.
//
// If no API keys are configured, the service accepts loopback listeners only. A loopback listener accepts only requests
// for the names of this machine, so that no foreign web page can call the service from a browser. The service reloads
// TLS certificates when their files change.
package gate
