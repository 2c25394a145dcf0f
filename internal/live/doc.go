// Package live keeps the changes that calls have made to sets since the sets were built.
package live
