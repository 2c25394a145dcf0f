// Package access says who may call and how fast: keys with their scopes, and
// the rates of clients, kept by this process or shared by all.
package access
