// Package pacerlogs keeps the logs of pacers, and the requests that took permits of
// them, in the embedded database.
package pacerlogs
