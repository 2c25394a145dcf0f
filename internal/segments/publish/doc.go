// Package publish is what makes generations of segments live, takes them back and
// removes what nobody needs any more.
package publish
