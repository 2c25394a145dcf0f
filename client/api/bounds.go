package api

// MaxMessageID is the maximum length of a message id in bytes.
const MaxMessageID = 128

// MaxUserIDs, MaxBitmapUsers and MaxBodyBytes are the default bounds of an API call. The configuration of the service
// may change MaxUserIDs, MaxBitmapUsers and MaxBodyBytes. The service rejects an API call that exceeds a bound with
// the error code CodeTooLarge.
const (
	MaxUserIDs     = 100_000   // ids of user_ids
	MaxBitmapUsers = 1_000_000 // users in users_bitmap
	MaxBodyBytes   = 16 << 20  // bytes of a body, before and after decompression
)
