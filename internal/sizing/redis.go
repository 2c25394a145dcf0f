package sizing

import "math"

// These constants describe the data layout of package redisstore, whose tests verify them.
const (
	bucketSize = 190 // neighbouring ids that share a hash
	partitions = 64
	entrySize  = 12 // bytes of a send
)

// These constants were measured on Redis 7.0 in a cluster of one node. TestRedisMemory verifies them.
const (
	keyBytes      = 160 // bytes of a key without its listpack: name, object, entries of two tables
	listpackBytes = 24  // bytes of a bucket without its users: header and expiry time
	messageBytes  = 12_000
	serverBytes   = 4 << 20 // bytes of a server without users: tables, scripts, buffers of connections
)

// RedisData returns the memory of all logs, in bytes, on one copy, as used_memory counts it.
func RedisData(l Load) float64 {
	if l.Spread() {
		return float64(l.Users) * (entrySize*l.Sends + spreadBytes)
	}
	buckets := float64(l.Users) / l.Density / bucketSize
	used, bytes := 0.0, 0.0
	for n, p := range shares(l.Density) {
		if n == 0 {
			continue
		}
		used += p
		bytes += p * sizeClass(listpackBytes+float64(n)*userBytes(l.Sends))
	}
	return buckets * (bytes + used*keyBytes)
}

// spreadBytes is a user's share of the bytes that Redis takes besides the sends, where ids are not dense: at most, for
// 15 to 195 users in a bucket.
const spreadBytes = 20

// RedisMessages returns the memory of the counts by message, in bytes.
func RedisMessages(l Load) float64 { return l.Messages * l.Days * messageBytes }

// userBytes returns a user's bytes in a listpack: the number of the field, the value, and the list's overhead for
// both.
func userBytes(sends float64) float64 {
	field := float64(128*2+62*3) / bucketSize // numbers up to 127 take one byte, and one to go back
	value := entrySize * sends
	switch {
	case value < 64:
		return field + 1 + value + 1
	case value+2 < 128:
		return field + 2 + value + 1
	}
	return field + 2 + value + 2
}

// shares returns the share of the buckets that have n users, for each n. If the used ids are random, the result is
// the binomial distribution. With a density of 1 all neighbours are in use.
func shares(density float64) []float64 {
	p := make([]float64, bucketSize+1)
	if density >= 1 {
		p[bucketSize] = 1
		return p
	}
	for n := range p {
		all, _ := math.Lgamma(bucketSize + 1)
		in, _ := math.Lgamma(float64(n) + 1)
		out, _ := math.Lgamma(bucketSize - float64(n) + 1)
		p[n] = math.Exp(all - in - out + float64(n)*math.Log(density) + (bucketSize-float64(n))*math.Log1p(-density))
	}
	return p
}

// sizeClass returns the bytes that Redis' allocator takes for a given number of bytes. The allocator has four sizes
// for each doubling.
func sizeClass(bytes float64) float64 {
	if bytes <= 64 {
		return math.Ceil(bytes/8) * 8
	}
	step := math.Exp2(math.Ceil(math.Log2(bytes)) - 3)
	return math.Ceil(bytes/step) * step
}

// RedisMaster returns the memory of the fullest master, as used_memory counts it: its share of the partitions, and
// the replication backlog.
func RedisMaster(l Load) float64 {
	return (RedisData(l)+RedisMessages(l))*l.largestShare() + serverBytes + Backlog(l)
}

// Backlog returns the bytes of the replication backlog. The backlog covers one minute of the blast, or the whole
// blast if that is less, and at least 64 MiB.
func Backlog(l Load) float64 {
	missed := min(60*l.Rate(), float64(l.Blast))
	return max(64<<20, missed*replicatedBytes(l)*l.largestShare())
}

// Maxmemory returns the value to configure as maxmemory: a quarter above the need. The reserve keeps Redis from
// rejecting users who received more sends in a week than planned.
func Maxmemory(l Load) float64 { return 1.25 * RedisMaster(l) }

// fragmentation is the memory that the machine uses for each byte that Redis uses. TestFragmentation measures it.
const fragmentation = 1.10

// CopyOnWrite returns the additional memory of a master while it rewrites its append-only file during a blast. Each
// bucket that the blast changes exists twice.
func CopyOnWrite(l Load) float64 {
	share := float64(l.Blast) / float64(l.Users)
	touched := 0.0
	all := 0.0
	for n, p := range shares(l.Density) {
		all += p * float64(n)
		touched += p * float64(n) * (1 - math.Pow(1-share, float64(n)))
	}
	return RedisData(l) * l.largestShare() * touched / all
}

// RedisMachine returns the memory that the machine of a master or a replica needs, in bytes.
func RedisMachine(l Load) float64 { return Maxmemory(l)*fragmentation + CopyOnWrite(l) }

// A decision takes Redis these processor times (docs/benchmarks.md): neighbours in a blast, random users, and
// calls with one user, which wait for a reply of their own.
const (
	blastSeconds  = 2.2e-6
	randomSeconds = 6.1e-6
	singleSeconds = 25e-6
)

// decisionSeconds returns Redis' processor time for a user of the blast. The more users of a bucket the blast
// decides, the less time each user takes.
func (l Load) decisionSeconds() float64 { return mix(l, blastSeconds, randomSeconds) }

// RedisCores returns the number of processors that the commands of all masters use during the blast.
func (l Load) RedisCores() float64 { return l.Rate()*l.decisionSeconds() + l.Single*singleSeconds }
