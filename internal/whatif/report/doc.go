// Package report shows the result of a replay to people: as tables of text, and as one page of
// HTML with pictures, each with its numbers beside it, that needs nothing from elsewhere and no script.
package report
