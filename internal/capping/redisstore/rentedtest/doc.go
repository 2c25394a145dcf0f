// Package rentedtest tests the Redis store on Redis servers with the restrictions of hosting providers: forbidden,
// hidden or renamed commands, gateways, DNS names, and TLS only. The tests set each of these restrictions on real Redis
// servers. Some tests put a gateway (gateway.go) or a DNS server (names.go) between the servers and the store.
package rentedtest
