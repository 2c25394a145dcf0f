// Package campaigntest is the acceptance suite of messages.Store: what every store
// that counts campaigns must do, whatever it keeps its counts in.
//
// The oracle is a naive model: for each user the list of sends that are recorded, and for
// each campaign a number that goes up by one where one is added and another one where
// one is given back. It predicts each verdict, and so sees where the store counts what
// it did not do. Cases share nothing: each has users and messages of its own.
package messagestest
