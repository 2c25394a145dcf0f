// Package outlook says on pages of the console how many of some users may receive something
// on a channel, now and over the next days, if nobody were sent anything before.
//
// The service decides each instant as a filter call would and records nothing, which costs
// as much as the call. So of more than MostUsers a sample is decided, which the page says,
// and what was found is told again for Age, to whom it was found for.
package outlook
