// Package storetest is the acceptance test suite for every implementation of capping.Store.
//
//	random calls ─┬─> store under test ─┬─> compare every answer
//	              └─> naive model ──────┘
//
// Run tests the store alone. RunPolicies tests a capper with a whole policy over the store. RunUpgrade
// tests a store that an earlier version has written.
//
// A test case controls the clock of the store. The cases share no data: each case uses its own users
// and message ids, so the keys of a case need no removal. The only exceptions are the users 0 and
// 4294967295, which a case erases before it uses them.
//
// Run compares random histories with a naive model (model.go): a plain list of sends for each user,
// which is counted again for every question. The model shares no code with capping.Judge.
//
// RunPolicies draws random policies with suppression, holdout, quiet hours and limits. The limits
// use calendars, users' time zones and shadow mode. It draws overlapping sets of users, makes calls
// of every kind over several weeks, and forecasts decisions in other seasons. A second naive model
// (policymodel.go) checks each user's decision. That model knows only the documented rules. It has types
// of its own, reads local times from a calendar, and finds later times minute by minute.
package storetest
