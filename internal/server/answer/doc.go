// Package answer writes the answers of filter, release, look-up and permits calls: decisions
// are counted in one pass and the answer is appended to a buffer, without a value
// per user or permit. Bitmaps are written container by container from the ascending
// users, runs of permits as waits from now.
package answer
