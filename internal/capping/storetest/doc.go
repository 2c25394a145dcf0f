// Package storetest is the acceptance test suite for every implementation of capping.Store.
//
//	random calls ─┬─> store under test ─┬─> compare every result
//	              └─> naive model ──────┘
//
// The function Run tests a store without a Capper. RunPolicies tests a Capper that uses the store with whole policies.
// RunUpgrade tests a store that contains data of an earlier version.
//
// Each test case controls the clock with which its store stamps sends. The test cases share no data: each case uses its
// own users and message ids, so the keys of a case need no removal. Several test cases share only the users 0 and
// 4294967295, so a case first erases the logs of these users.
//
// Run compares random histories of calls with a naive model (model.go). The model in model.go is a plain list of sends
// for each user, and counts the sends in the list again for every call. The model in model.go shares no code with
// capping.Judge.
//
// RunPolicies draws random policies with suppression, holdout, quiet hours and limits. The limits of the random
// policies use calendars, users' time zones and shadow mode (deny nobody). RunPolicies draws overlapping sets of users,
// makes calls of every kind over several weeks, and forecasts decisions in other seasons. A second naive model
// (policymodel.go) checks each user's decision. The model in policymodel.go follows only the documented rules. The
// model in policymodel.go has its own types, reads local times from a calendar, and finds later times minute by minute.
package storetest
