// Package clienttest tests package client against the real service. The client is a module of its own and must not
// require the service's modules, so its tests cannot be in the same folder.
package clienttest
