// Package clienttest tests package client against the real service. Package client is a separate Go module and must
// not require the modules of the service. Tests of the client against the service therefore cannot be in the folder
// of the client.
package clienttest
