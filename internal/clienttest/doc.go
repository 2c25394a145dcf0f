// Package clienttest tests package client against the real service. The client
// is a module of its own, which must not need the service's modules, and so its
// tests cannot lie beside it.
package clienttest
