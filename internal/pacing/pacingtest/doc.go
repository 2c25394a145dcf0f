// Package pacingtest is the acceptance suite of pacing.Store for every kind of store.
//
// Run runs the test cases on a store. Each case uses its own pacers, so a store that lives longer than a case need not
// be emptied. The suite uses the store's clock: a grant contains the store's time, and the model predicts slots for
// that time. Long waits are checked with slots in the future, so no case waits for these slots.
//
// Two checkers, the model and the Oracle, judge the grants without code of pacing.Place. The model is a log of single
// slots and counts them for each ask; a pacing.Log says which of its slots are slots ahead. The model predicts each
// slot, and must see all calls. The Oracle sees only the grants that some callers received, and finds windows with more
// permits than their limit allows. The Oracle therefore also works in load tests in which replies are lost.
//
// Greedy generates load with clients that take all permits that they can get.
package pacingtest
