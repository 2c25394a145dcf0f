// Package clienttest tests package client against the real service. Package client is a separate Go module and must not
// require the modules of the service. Because package client must not require the service's modules, tests of the
// client against the service cannot be in the folder of the client.
package clienttest
