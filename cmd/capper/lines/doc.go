// Package lines copies lines at a pace: each is written, whole, when its permit has
// been had, and those whose permits are there are written together. How many went
// through is known at any time, also while a write or a read hangs.
package lines
