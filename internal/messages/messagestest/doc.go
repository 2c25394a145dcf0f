// Package messagestest contains tests that every implementation of messages.Store must pass.
//
// The tests compare the store under test with a simple model. The model keeps a list of recorded sends for each user.
// For each message, the model keeps two counters: one of recorded sends and one of released sends. The model predicts
// the verdict about each user, so that the tests also find counts without a recorded send. The test cases share no
// users and no messages with each other.
package messagestest
