// Package messagestest is the acceptance suite of messages.Store for every store that counts messages.
//
// The suite compares the store with a simple model. The model keeps, for each user, a list of recorded sends, and for
// each message, one counter of recorded and one of released sends. The model predicts each verdict, so that the suite
// also finds counts that belong to no send. Test cases share no users and no messages.
package messagestest
