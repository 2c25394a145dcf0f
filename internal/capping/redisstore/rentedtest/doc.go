// Package rentedtest tests the Redis store against the restrictions of hosting providers: forbidden, hidden or renamed
// commands, gateways, DNS names, and connections with TLS only. The tests impose each restriction on real Redis
// servers. In some tests, the store reaches the servers through a gateway (gateway.go), or finds them through a DNS
// server (names.go).
package rentedtest
