// Package pacingtest is the acceptance suite of pacing.Store: what every store must
// do, whatever it keeps its logs in.
//
// Run drives a store through cases. Each takes pacers of its own, so a store that
// outlives a case needs no flushing in between. Time is the store's: a grant tells
// when it was made, and what it is compared with is told that time. What takes long
// is placed in the future, so no case waits for it.
//
// There are two judges, which share no code with pacing.Place. The model is a log of
// single slots that are counted anew for every question; it predicts each slot, and
// needs to see all calls. The Oracle sees nothing but what some callers were granted,
// and finds windows that hold more than their limit: it judges storms, in which
// answers are lost.
//
// Greedy is load: clients that take all they can get.
package pacingtest
