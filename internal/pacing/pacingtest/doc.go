// Package pacingtest contains tests that every implementation of pacing.Store must pass.
//
// The function Run runs the test cases on a store. Each test case uses its own pacers, so several cases can use one
// store without emptying the store in between. The tests use the store's clock: a grant contains the store's time, and
// the model predicts slots for that time. The tests check slots far in the future, but no test case waits for these
// slots.
//
// Two checkers, the model and the Oracle, judge the grants of a store without code of pacing.Place. The model is a
// plain list of slots, and counts the slots again for each request. The model also has a pacing.Log, to know the slots
// before which later permits may still get slots. The model predicts each slot, and therefore must see all calls to the
// store. The Oracle sees only the grants that some callers received, and finds windows with more permits than the limit
// of the window allows. The Oracle therefore also works in load tests in which replies are lost.
//
// The type Greedy generates load with clients that take all permits that they can get.
package pacingtest
