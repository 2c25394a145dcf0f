// Package clienttest tests package client against the real service. The client is a separate Go module and must not
// require the modules of the service. The tests of the client therefore cannot be in the folder of the client.
package clienttest
