// Package messagestest contains tests that every implementation of messages.Store must pass.
//
// The tests compare the store with a simple model. The model keeps, for each user, a list of recorded sends, and for
// each message, one counter of recorded and one of released sends. The model predicts the verdict about each user, so
// that the tests also find counts that belong to no send. Test cases share no users and no messages.
package messagestest
