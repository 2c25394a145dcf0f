// Package bitmap is the codec of the portable roaring format for 32-bit ids: a
// strict reader, the encoder, the set that ids are collected in, and the arithmetic
// of bitmaps.
package bitmap
