package sizing

import "math"

// together returns the number of users in the same bucket that a blast decides together, at least 1. Users of one
// bucket share a key and its bytes on the network.
func together(l Load) float64 {
	return max(1, float64(l.Blast)/float64(l.Users)*l.Density*bucketSize)
}

// TestBytesOnTheWire measures these constants.
const (
	scriptUsers = 8 // users of a bucket that a script writes at once
)

// replicatedBytes returns the bytes that a master sends to one replica for a user: the whole new log, its field, and
// a share of the key.
func replicatedBytes(l Load) float64 {
	return entrySize*(l.Sends+1) + 17.5 + 47/min(scriptUsers, together(l))
}

// ToRedis returns the bytes that the service sends to the masters for a user.
func ToRedis(l Load) float64 { return max(8.5, 3.4+44/together(l)) }

// FromRedis returns the bytes that the masters return for a user.
func FromRedis(l Load) float64 { return 1.5 + 1.2/together(l) }

// near returns how close a blast comes to a blast of neighbours, in which a bucket has 7 users: from 0 to 1.
func near(l Load) float64 { return min(1, together(l)/7) }

func mix(l Load, close, far float64) float64 { return close*near(l) + far*(1-near(l)) }

// ToReplicas returns the bytes that a master sends to all its replicas for a user.
func ToReplicas(l Load) float64 { return replicatedBytes(l) * float64(l.Replicas) }

// IDBytes is the size of a user id in JSON with its comma: nine digits for an average id.
const IDBytes = 10.0

// idBytes returns the size of a user id in JSON: 38 bytes and a comma for a UUID, 22 for a number of 64 bits.
func (l Load) idBytes() float64 {
	switch l.IDs {
	case "":
		return IDBytes
	case "uint64":
		return 23
	}
	return 39
}

// BitmapBytes returns the size of a user id in a base64 bitmap: 2 bytes for an id alone, and one bit where ids are
// dense.
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

// AppendOnly returns the disk space for a master's append-only file, in bytes: the data as a snapshot, the same size
// again before a rewrite, and the new file during the rewrite.
func AppendOnly(l Load) float64 { return 3 * RedisData(l) * l.largestShare() }

// TestEmbeddedDisk and TestEmbeddedDiskOfFewUsers measure these constants.
const (
	embeddedUserBytes = 9.0 // bytes of a user's key and of its entry in a table
	embeddedSpare     = 4.0 // largest factor of disk space before a compaction
	// embeddedBase covers seven write-ahead logs of 70 MiB, which are allocated in advance, and the manifests.
	embeddedBase = 512 << 20
)

// EmbeddedDisk returns the disk space of the embedded store, in bytes.
func EmbeddedDisk(l Load) float64 {
	return EmbeddedData(l)*embeddedSpare + embeddedBase
}

// EmbeddedData returns the size of the embedded store's tables after a compaction, in bytes.
func EmbeddedData(l Load) float64 {
	return float64(l.Users) * (l.embeddedUserBytes() + entrySize*l.Sends)
}

// embeddedSpreadBytes is the additional size of a user in the embedded store, where ids are not dense: keys have 8
// bytes, and neighbours share few of them.
const embeddedSpreadBytes = 9.0

func (l Load) embeddedUserBytes() float64 {
	if l.Spread() {
		return embeddedUserBytes + embeddedSpreadBytes
	}
	return embeddedUserBytes
}

// dictionaryBytes is the size of an id in the dictionary of a generation, whose ids are not dense.
const dictionaryBytes = 6.3

// DictionaryBytes returns the memory of the dictionaries of ids that are not dense: two, because the next generation
// is read while the current one is in use.
func DictionaryBytes(l Load) float64 {
	if !l.Spread() {
		return 0
	}
	return 2 * dictionaryBytes * float64(l.Users)
}

// auditImage is the bytes of an image in the audit record of a call for 10,000 users; larger calls take less.
const auditImage = 6.5

// AuditDay returns the bytes of audit records for one day; see docs/audit.md, The format.
func AuditDay(l Load) float64 {
	if l.Spread() {
		return l.Messages*float64(l.Blast)*auditImage + l.Single*86400*44
	}
	share := float64(l.Blast) / float64(l.Users) * l.Density
	return l.Messages*float64(l.Blast)*min(2, 1/(8*share)) + l.Single*86400*35
}

// A user takes the service these processor times: without the store, and in the client of the store
// (docs/benchmarks.md).
const (
	jsonSeconds, bitmapSeconds = 0.10e-6, 0.03e-6
	clientNear, clientFar      = 0.08e-6, 0.29e-6
)

// ServiceCores returns the number of processors that the service uses during the blast, for JSON and for bitmaps.
func ServiceCores(l Load) (json, bitmap float64) {
	client := mix(l, clientNear, clientFar)
	return l.Rate() * (jsonSeconds + client), l.Rate() * (bitmapSeconds + client)
}

// SegmentBytes returns the memory of segments that contain every user: a map of 3 bits an id, twice, because the next
// generation is read while the current one is in use.
func SegmentBytes(l Load) float64 { return 2 * float64(l.Users) / l.Density * 3 / 8 }

// ServiceMemory returns the most memory, in bytes, that an instance takes with the default bounds
// (docs/operating.md): bodies and answers, users of calls, segments, and the rest.
func ServiceMemory(l Load) float64 {
	return 2*2*(512<<20) + 64*4e6 + SegmentBytes(l) + DictionaryBytes(l) + 150<<20
}

// CallsAtOnce returns the number of parallel calls of 100,000 users that the blast needs, if each call takes 0.2 s.
func CallsAtOnce(l Load) float64 { return math.Ceil(l.Rate() * 0.2 / 100_000) }
