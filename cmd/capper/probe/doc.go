// Package probe asks the service of this machine how it does, for what restarts it: the
// health check of an image in which there is no other program that could.
package probe
