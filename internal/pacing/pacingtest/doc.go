// Package pacingtest is the acceptance suite of pacing.Store for every kind of store.
//
// Run runs the test cases on a store. Each case uses its own pacers, so a store that lives longer than a
// case need not be emptied. The suite uses the store's time: a grant contains the store's time, and the
// model predicts slots for that time. Long waits are placed in the future, so that no case waits for them.
//
// Two checkers that share no code with pacing.Place judge the grants. The model is a log of single slots
// and counts them for every question; a pacing.Log tells it which slots stand ahead. It predicts each
// slot and must see all calls. The Oracle sees only the grants that some callers received, and finds
// windows with more permits than their limit. The Oracle therefore also works in storms that lose
// replies.
//
// Greedy generates load with clients that take all permits they can get.
package pacingtest
