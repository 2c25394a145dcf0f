package sizing

import "math"

// The function "together" returns the average number of users of one bucket about whom the blast (the largest campaign)
// decides together. The result is at least 1. The users of a bucket share a Redis key, so a call sends the bytes of
// this key once for all these users.
func together(l Load) float64 {
	return max(1, float64(l.Blast)/float64(l.Users)*l.Density*bucketSize)
}

// The test TestBytesOnTheWire measures the constant scriptUsers.
const (
	scriptUsers = 8 // number of users of a bucket in one write of a script
)

// replicatedBytes returns the number of bytes that a Redis master sends to one replica for each decided user. A replica
// receives the user's whole new log, the user's field name in the Redis hash, and a part of the bytes of the key.
func replicatedBytes(l Load) float64 {
	return entrySize*(l.Sends+1) + 17.5 + 47/min(scriptUsers, together(l))
}

// ToRedis returns the number of bytes that the service sends to Redis masters for each decided user.
func ToRedis(l Load) float64 { return max(8.5, 3.4+44/together(l)) }

// FromRedis returns the number of bytes that Redis masters send to the service for each decided user.
func FromRedis(l Load) float64 { return 1.5 + 1.2/together(l) }

// The function "near" returns a weight from 0 to 1. The weight is 1 if the blast (the largest campaign) decides about
// at least 7 users of each bucket (users who share a Redis key) together. For fewer users, the weight is lower.
func near(l Load) float64 { return min(1, together(l)/7) }

func mix(l Load, close, far float64) float64 { return close*near(l) + far*(1-near(l)) }

// ToReplicas returns the number of bytes that a Redis master sends to all its replicas for each decided user.
func ToReplicas(l Load) float64 { return replicatedBytes(l) * float64(l.Replicas) }

// IDBytes is the size in bytes of a user id in JSON, including a comma. An average id has nine digits.
const IDBytes = 10.0

// idBytes returns the size in bytes of a user id in JSON, including a comma. A UUID takes 39 bytes in JSON, and a
// 64-bit number takes 23 bytes.
func (l Load) idBytes() float64 {
	switch l.IDs {
	case "":
		return IDBytes
	case "uint64":
		return 23
	}
	return 39
}

// BitmapBytes returns the number of bytes that a user id takes in base64. A dense id (32-bit number) is in a bitmap,
// and every other id is packed. Before the base64 encoding, a bitmap has 2 bytes for an isolated id, and one bit for an
// id among consecutive ids.
func BitmapBytes(l Load) float64 {
	switch l.IDs {
	case "uint64":
		return 4.0 / 3 * 8
	case "uuid", "text":
		return 4.0 / 3 * 16
	}
	share := float64(l.Blast) / float64(l.Users) * l.Density
	return 4.0 / 3 * min(2, 1/(8*share))
}

// AppendOnly returns the disk space in bytes for the append-only file of a Redis master. The disk space is three times
// the size of the data, for the snapshot, the writes before a rewrite, and the rewritten file.
func AppendOnly(l Load) float64 { return 3 * RedisData(l) * l.largestShare() }

// The tests TestEmbeddedDisk and TestEmbeddedDiskOfFewUsers measure the constants for the disk space of the embedded
// store.
const (
	embeddedUserBytes = 9.0 // bytes for the key of a user and its entry in a table
	embeddedSpare     = 4.0 // maximum factor for disk space before a compaction
	// embeddedBase is the disk space in bytes for manifests, and for seven preallocated write-ahead logs of 70 MiB.
	embeddedBase = 512 << 20
)

// EmbeddedDisk returns the disk space in bytes that the embedded store needs.
func EmbeddedDisk(l Load) float64 {
	return EmbeddedData(l)*embeddedSpare + embeddedBase
}

// EmbeddedData returns the size in bytes of the embedded store's tables after a compaction.
func EmbeddedData(l Load) float64 {
	return float64(l.Users) * (l.embeddedUserBytes() + entrySize*l.Sends)
}

// embeddedSpreadBytes is the number of additional bytes for a user in the embedded store if ids are not dense 32-bit
// numbers. If ids are not dense, a key in the embedded store has 8 bytes, and consecutive keys have few bytes in
// common.
const embeddedSpreadBytes = 9.0

func (l Load) embeddedUserBytes() float64 {
	if l.Spread() {
		return embeddedUserBytes + embeddedSpreadBytes
	}
	return embeddedUserBytes
}

// dictionaryBytes is the size in bytes of an id in the dictionary of a segments generation, if ids are not dense.
const dictionaryBytes = 6.3

// DictionaryBytes returns the memory in bytes for the dictionaries of ids that are not dense. A service instance needs
// memory for two dictionaries, because the instance reads the next segments generation while it uses the current
// generation.
func DictionaryBytes(l Load) float64 {
	if !l.Spread() {
		return 0
	}
	return 2 * dictionaryBytes * float64(l.Users)
}

// auditImage is the number of bytes for one user in the audit record of a call with 10,000 users, if ids are not
// dense. In the audit record of a call with more users, each user takes fewer bytes.
const auditImage = 6.5

// AuditDay returns the size in bytes of the audit records of one day; see docs/design/audit-format.md.
func AuditDay(l Load) float64 {
	if l.Spread() {
		return l.Messages*float64(l.Blast)*auditImage + l.Single*86400*44
	}
	share := float64(l.Blast) / float64(l.Users) * l.Density
	return l.Messages*float64(l.Blast)*min(2, 1/(8*share)) + l.Single*86400*35
}

// These constants are the seconds of processor time that the service needs for one user (docs/benchmarks.md). The
// constants jsonSeconds and bitmapSeconds describe the code of the service. The constants clientNear and clientFar
// describe the client library of the store.
const (
	jsonSeconds, bitmapSeconds = 0.10e-6, 0.03e-6
	clientNear, clientFar      = 0.08e-6, 0.29e-6
)

// ServiceCores returns the number of processors that the service uses during the blast (the largest campaign): for
// requests with JSON lists of users, and for requests with bitmaps.
func ServiceCores(l Load) (json, bitmap float64) {
	client := mix(l, clientNear, clientFar)
	return l.Rate() * (jsonSeconds + client), l.Rate() * (bitmapSeconds + client)
}

// SegmentBytes returns the memory in bytes for segments that contain every user. In memory, a segments generation takes
// 3 bits for each id. A service instance needs memory for two generations, because the instance reads the next
// generation while it uses the current generation.
func SegmentBytes(l Load) float64 { return 2 * float64(l.Users) / l.Density * 3 / 8 }

// ServiceMemory returns the maximum memory in bytes of a service instance with the default bounds (docs/operating.md).
// The result of ServiceMemory includes the memory for request bodies, responses, the users of calls, segments,
// dictionaries and the program.
func ServiceMemory(l Load) float64 {
	return 2*2*(512<<20) + 64*4e6 + SegmentBytes(l) + DictionaryBytes(l) + 150<<20
}

// CallsAtOnce returns the number of parallel calls with 100,000 users that the blast (the largest campaign) needs, if
// each call takes 0.2 s.
func CallsAtOnce(l Load) float64 { return math.Ceil(l.Rate() * 0.2 / 100_000) }
