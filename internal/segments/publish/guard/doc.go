// Package guard says what may go live without somebody's word for it.
package guard
