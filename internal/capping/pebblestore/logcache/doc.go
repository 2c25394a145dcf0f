// Package logcache keeps logs of users in memory, in a form that the garbage
// collector does not look into.
package logcache
