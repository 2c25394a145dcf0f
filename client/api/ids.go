package api

// IDs is the response to GET /v1/ids: the kind of a deployment's user ids, and their hash key. The service computes the
// image of an id (the 64-bit hash by which it stores a user) from the id and the hash key.
type IDs struct {
	Kind  string `json:"kind"`            // one of the kinds
	Key   string `json:"key,omitempty"`   // 32 hexadecimal digits; "" for KindDense
	Check string `json:"check,omitempty"` // checksum of kind and key, which stores and manifests keep; "" for KindDense
}

// KindDense, KindUint64, KindUUID and KindText are the kinds of ids. All ids of a deployment have one kind.
const (
	KindDense  = "dense"  // numbers from 0 to 2^32-1
	KindUint64 = "uint64" // numbers from 0 to 2^64-1
	KindUUID   = "uuid"
	KindText   = "text" // 1 to 256 bytes of UTF-8
)
