// Package objects is the places where objects lie: directories and S3 buckets, and
// the input files there.
package objects
