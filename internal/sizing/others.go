package sizing

import "math"

// together is how many users of a bucket a blast asks for, 1 at least: they share a key, and its
// bytes on the wire.
func together(l Load) float64 {
	return max(1, float64(l.Blast)/float64(l.Users)*l.Density*bucketSize)
}

// Measured: TestBytesOnTheWire.
const (
	scriptUsers = 8 // users of a bucket that a script writes at once
)

// replicatedBytes is what a replica is sent of a user: the whole log, anew, its field, and a share
// of the key.
func replicatedBytes(l Load) float64 {
	return entrySize*(l.Sends+1) + 17.5 + 47/min(scriptUsers, together(l))
}

// ToRedis is the bytes of a user from the service to the masters.
func ToRedis(l Load) float64 { return max(8.5, 3.4+44/together(l)) }

// FromRedis is what comes back.
func FromRedis(l Load) float64 { return 1.5 + 1.2/together(l) }

// near is how much of a blast is like one of neighbours, of whom a bucket has 7.
func near(l Load) float64 { return min(1, together(l)/7) }

func mix(l Load, close, far float64) float64 { return close*near(l) + far*(1-near(l)) }

// ToReplicas is bytes of a user from a master to all its replicas.
func ToReplicas(l Load) float64 { return replicatedBytes(l) * float64(l.Replicas) }

// IDBytes is a user id in JSON, with its comma: nine digits in the middle of their range.
const IDBytes = 10.0

// BitmapBytes is a user id in a bitmap, of base64: an id of its own 2 bytes, a bit each where they
// are dense.
func BitmapBytes(l Load) float64 {
	share := float64(l.Blast) / float64(l.Users) * l.Density
	return 4.0 / 3 * min(2, 1/(8*share))
}

// AppendOnly is the disk of a master's append-only file: its data as a snapshot, as much again
// before it is written anew, and the new one beside it.
func AppendOnly(l Load) float64 { return 3 * RedisData(l) * l.largestShare() }

// Measured: TestEmbeddedDisk, TestEmbeddedDiskOfFewUsers.
const (
	embeddedUserBytes = 9.0 // of a user's key and what a table notes of it
	embeddedSpare     = 4.0 // what waits to be compacted, at worst
	// seven write-ahead logs, to each of which 70 MiB are allotted in advance, and manifests
	embeddedBase = 512 << 20
)

// EmbeddedDisk is the disk of the embedded store.
func EmbeddedDisk(l Load) float64 {
	return EmbeddedData(l)*embeddedSpare + embeddedBase
}

// EmbeddedData is what the embedded store's tables hold after they were compacted.
func EmbeddedData(l Load) float64 {
	return float64(l.Users) * (embeddedUserBytes + entrySize*l.Sends)
}

// AuditDay is what the record of decisions takes a day: docs/audit.md, The format.
func AuditDay(l Load) float64 {
	share := float64(l.Blast) / float64(l.Users) * l.Density
	return l.Messages*float64(l.Blast)*min(2, 1/(8*share)) + l.Single*86400*35
}

// The service's time for a user, docs/benchmarks.md: above the store, and the store's client.
const (
	jsonSeconds, bitmapSeconds = 0.10e-6, 0.03e-6
	clientNear, clientFar      = 0.08e-6, 0.29e-6
)

// ServiceCores is how many processors the service takes during the blast, in JSON and as bitmaps.
func ServiceCores(l Load) (json, bitmap float64) {
	client := mix(l, clientNear, clientFar)
	return l.Rate() * (jsonSeconds + client), l.Rate() * (bitmapSeconds + client)
}

// SegmentBytes is the memory of segments in which every user is, in a map of 3 bits an id, and of
// as much again while the next generation is read.
func SegmentBytes(l Load) float64 { return 2 * float64(l.Users) / l.Density * 3 / 8 }

// ServiceMemory is the most that an instance takes with the default bounds, docs/operating.md: bodies
// and answers, users of calls, segments, and all else.
func ServiceMemory(l Load) float64 {
	return 2*2*(512<<20) + 64*4e6 + SegmentBytes(l) + 150<<20
}

// CallsAtOnce is how many calls of 100,000 users have to be in flight for the blast, where each
// takes 0.2 s.
func CallsAtOnce(l Load) float64 { return math.Ceil(l.Rate() * 0.2 / 100_000) }
