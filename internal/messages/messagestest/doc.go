// Package messagestest is the acceptance suite of messages.Store for every store that counts messages.
//
// The suite compares the store with a simple model. The model holds each user's list of recorded sends, and
// for each message one counter of recorded and one of released sends. The model predicts each verdict, so
// that the suite finds counts without a matching send. Test cases share no users and no messages.
package messagestest
