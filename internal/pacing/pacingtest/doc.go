// Package pacingtest contains tests that every implementation of pacing.Store must pass.
//
// The function Run runs the test cases on a store. Each test case uses its own pacers, so a store that lives longer
// than one case need not be emptied. The tests use the store's clock: a grant contains the store's time, and the model
// predicts slots for that time. The tests check long waits with slots in the future, so no case waits for these slots.
//
// Two checkers, the model and the Oracle, judge the grants of a store without code of pacing.Place. The model is a
// plain list of slots, and counts them anew for each request. A pacing.Log tells the model before which slots later
// permits may still get slots. The model predicts each slot, and therefore must see all calls to the store. The Oracle
// sees only the grants that some callers received, and finds windows with more permits than their limit allows. The
// Oracle therefore also works in load tests in which replies are lost.
//
// Greedy generates load with clients that take all permits that they can get.
package pacingtest
