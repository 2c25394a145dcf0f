package sizing

import "math"

// These constants describe the data layout of package redisstore. Tests of package redisstore verify the constants.
const (
	bucketSize = 190 // number of consecutive ids that share a Redis hash
	partitions = 64
	entrySize  = 12 // bytes for a send
)

// These constants are sizes in the memory of Redis, measured with Redis 7.0 in a cluster with one node. The test
// TestRedisMemory verifies the constants for the memory of Redis.
const (
	keyBytes      = 160 // bytes for a key without its listpack: name, object, and entries in two tables
	listpackBytes = 24  // bytes for a bucket without its users: header and expiry time
	messageBytes  = 12_000
	serverBytes   = 4 << 20 // bytes for a server without users: tables, scripts, buffers of connections
)

// RedisData returns the memory in bytes of one copy of all users' logs, as in Redis' value used_memory.
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

// spreadBytes is the maximum number of bytes that Redis needs for a user in addition to the sends, if ids are not dense
// 32-bit numbers. The constant spreadBytes is valid for 15 to 195 users in a bucket (users who share a Redis key).
const spreadBytes = 20

// RedisMessages returns the memory in bytes that Redis needs for the decision counts of messages.
func RedisMessages(l Load) float64 { return l.Messages * l.Days * messageBytes }

// userBytes returns the number of bytes of a user in a listpack (compact hash) of Redis. The listpack contains, for
// each user, the number of the field, the value, and the overhead of both.
func userBytes(sends float64) float64 {
	field := float64(128*2+62*3) / bucketSize // numbers up to 127 take one byte; each entry adds one byte (backlen)
	value := entrySize * sends
	switch {
	case value < 64:
		return field + 1 + value + 1
	case value+2 < 128:
		return field + 2 + value + 1
	}
	return field + 2 + value + 2
}

// The function "shares" returns, for each n, the fraction of the buckets (users who share a Redis key) that contain n
// users. If the density (used fraction of the possible ids) is below 1, the function assumes that the used ids are
// random. The result is then the binomial distribution. If the density is 1, every bucket is full.
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

// sizeClass returns the number of bytes that the allocator of Redis reserves for an object of the given size. The
// allocator has four size classes between two neighbouring powers of two.
func sizeClass(bytes float64) float64 {
	if bytes <= 64 {
		return math.Ceil(bytes/8) * 8
	}
	step := math.Exp2(math.Ceil(math.Log2(bytes)) - 3)
	return math.Ceil(bytes/step) * step
}

// RedisMaster returns the memory of the Redis master with most partitions, as in Redis' value used_memory. The memory
// of a Redis master contains the data of the master's partitions and the replication backlog.
func RedisMaster(l Load) float64 {
	return (RedisData(l)+RedisMessages(l))*l.largestShare() + serverBytes + Backlog(l)
}

// Backlog returns the recommended size in bytes of Redis' replication backlog. The recommended backlog suffices for one
// minute of the blast (the largest campaign), or for the whole blast if the blast is shorter. The size is at least 64
// MiB.
func Backlog(l Load) float64 {
	missed := min(60*l.Rate(), float64(l.Blast))
	return max(64<<20, missed*replicatedBytes(l)*l.largestShare())
}

// Maxmemory returns the value for the Redis setting maxmemory: 25 % more than the computed memory. With this reserve,
// Redis accepts writes even if users receive more sends than planned.
func Maxmemory(l Load) float64 { return 1.25 * RedisMaster(l) }

// The constant "fragmentation" is the number of bytes that the machine uses for each byte that Redis reports as used.
// The test TestFragmentation measures the constant fragmentation.
const fragmentation = 1.10

// CopyOnWrite returns the additional memory in bytes of a Redis master that rewrites its append-only file during the
// blast (the largest campaign). Redis needs a second copy of each bucket (users who share a Redis key) that the blast
// changes during the rewrite.
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

// RedisMachine returns the memory in bytes that the machine of a Redis master or replica needs.
func RedisMachine(l Load) float64 { return Maxmemory(l)*fragmentation + CopyOnWrite(l) }

// These constants are the seconds of processor time that Redis needs for one user (docs/benchmarks.md). The first
// constant is for consecutive users in a blast (large campaign), and the second constant is for random users. The third
// constant is for calls with one user, because each such call needs a separate reply.
const (
	blastSeconds  = 2.2e-6
	randomSeconds = 6.1e-6
	singleSeconds = 25e-6
)

// decisionSeconds returns the seconds of Redis processor time for one user of the blast (the largest campaign). The
// more users of a call share a Redis key, the less time Redis needs for one user.
func (l Load) decisionSeconds() float64 { return mix(l, blastSeconds, randomSeconds) }

// RedisCores returns the number of processors that the commands of all Redis masters use during the blast (the largest
// campaign).
func (l Load) RedisCores() float64 { return l.Rate()*l.decisionSeconds() + l.Single*singleSeconds }
