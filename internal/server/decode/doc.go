// Package decode reads the bodies of requests strictly, in one pass.
//
// It is written by hand because the usual decoders let through what this API
// refuses (unknown and repeated fields, other cases of names, null ids, data
// after the object) and cost ten times as much per id. Ids go straight into the
// slice that the store gets; that slice is not pooled, since a store may still
// read it when a call has timed out.
//
// A bitmap is checked byte by byte before one id is expanded, in time linear in
// its size; the library's own check takes quadratic time on a container of many
// runs.
package decode
