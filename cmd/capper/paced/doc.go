// Package paced has the commands about pacers: one copies lines at their pace, the
// other tells what they have given out.
package paced
