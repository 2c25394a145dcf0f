package api

// MaxMessageID is the most bytes of a message id.
const MaxMessageID = 128

// The bounds of a call, unless the service is configured otherwise. What is
// larger is refused with CodeTooLarge.
const (
	MaxUserIDs     = 100_000   // ids of user_ids
	MaxBitmapUsers = 1_000_000 // users of users_bitmap
	MaxBodyBytes   = 16 << 20  // of a body, before and after decompression
)
