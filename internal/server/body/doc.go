// Package body receives the bodies of requests: refused by the header where that
// can be, read once into a pooled buffer at the sender's pace, and inflated when
// all of it is there. What a body holds of the budget of bodies grows with what
// has come.
package body
