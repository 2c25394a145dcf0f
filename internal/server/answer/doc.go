// Package answer writes the answers of filter and release calls: decisions are
// counted in one pass and the answer is appended to a buffer, without a value
// per user. Bitmaps are written container by container from the ascending users.
package answer
