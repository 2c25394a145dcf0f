// Package gate limits callers of the API: it checks their API keys, their rates and the resources that their calls
// hold.
//
//	call → listener     TLS, allowed host names, number of connections
//	     → Control      key, scope, namespace
//	     → limiter      users per second of the client
//	     → Budgets      memory of the body, users, memory of the answer
//	     → pace         minimum rate of the body and of the answer
//
// Clients share every Budget fairly. The client that holds most is refused first. A client that stops sending or
// reading is disconnected when another client needs the budget. A Place is one call's part of the budgets of users
// and answers.
//
// The limiter keeps the rates of clients in this process, or in Redis for all instances. The shared limiter falls
// back to the local one while Redis fails.
//
// Without API keys the service accepts loopback listeners only. A loopback listener accepts calls under this
// machine's own names only, so that no web page can call the service from a browser. TLS certificates are read again
// when their files change.
package gate
