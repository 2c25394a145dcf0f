// Package database is the Pebble database of the embedded store: opening it and
// knowing it again, its keys, writing so that it is durable, reading around
// damage, and being out of service. It knows which value is which user's, and
// nothing of what the values mean.
package database
