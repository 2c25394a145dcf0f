// Package rentedtest holds the tests of the Redis store on Redis as it is
// rented: what a provider forbids, hides, renames, puts a gateway before, or
// reaches by names and by TLS alone. Each restriction is a setting of real
// servers, or stands between them and the store (gateway.go, names.go).
package rentedtest
