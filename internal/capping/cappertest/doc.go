// Package cappertest is the acceptance suite of the whole policy over a store: random
// policies (suppression, holdout, quiet hours, limits by calendars, by users' time zones
// and in the shadow), random sets that overlap, calls of every kind over weeks and
// forecasts into other seasons, each user's decision compared with a naive model.
//
// The model knows the rules that users are told and nothing of how they are kept. It has
// types of its own, walks over lists, asks what a clock on the wall shows, and finds what
// comes later by stepping minute by minute.
package cappertest
