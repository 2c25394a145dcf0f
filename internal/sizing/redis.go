package sizing

import "math"

// The layout of package redisstore, which its tests hold to these.
const (
	bucketSize = 190 // neighbouring ids that share a hash
	partitions = 64
	entrySize  = 12 // bytes of a send
)

// Measured on Redis 7.0 in a cluster of one, and held by TestRedisMemory.
const (
	keyBytes      = 160 // of a key beside its listpack: name, object, entries of two tables
	listpackBytes = 24  // of a bucket beside its users: header, and how long the key lasts
	messageBytes  = 12_000
	serverBytes   = 4 << 20 // of a server with no users: tables, scripts, buffers of connections
)

// RedisData is the memory of all logs, on one copy, as used_memory counts it.
func RedisData(l Load) float64 {
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

// RedisMessages is the memory of what is counted by message.
func RedisMessages(l Load) float64 { return l.Messages * l.Days * messageBytes }

// userBytes is what a user takes in a listpack: the number of the field, its value, and what the
// list notes of both.
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

// shares is how many of the buckets have n users, for ids that are in use by chance: the binomial
// distribution. Neighbours that are all in use are one case of it.
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

// sizeClass is what Redis' allocator takes for so many bytes: four sizes to each doubling.
func sizeClass(bytes float64) float64 {
	if bytes <= 64 {
		return math.Ceil(bytes/8) * 8
	}
	step := math.Exp2(math.Ceil(math.Log2(bytes)) - 3)
	return math.Ceil(bytes/step) * step
}

// RedisMaster is the memory of the fullest master, as used_memory counts it: its share of the
// partitions, and the replication backlog.
func RedisMaster(l Load) float64 {
	return (RedisData(l)+RedisMessages(l))*l.largestShare() + serverBytes + Backlog(l)
}

// Backlog is what a replica that lost its connection for a minute catches up on, of the blast or of
// all of it where it takes less; 64 MiB at least.
func Backlog(l Load) float64 {
	missed := min(60*l.Rate(), float64(l.Blast))
	return max(64<<20, missed*replicatedBytes(l)*l.largestShare())
}

// Maxmemory is what a master should be allowed: a quarter more than it needs, as users who received
// more in a week than was thought are not refused.
func Maxmemory(l Load) float64 { return 1.25 * RedisMaster(l) }

// Measured: TestFragmentation. What is taken of the machine for each byte that is used.
const fragmentation = 1.10

// CopyOnWrite is what a master takes more while it writes its append-only file anew, when a blast
// goes on meanwhile: each bucket that the blast changes is there twice.
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

// RedisMachine is the memory that the machine of a master needs, and that of a replica.
func RedisMachine(l Load) float64 { return Maxmemory(l)*fragmentation + CopyOnWrite(l) }

// Redis' time for a decision, docs/benchmarks.md: neighbours of a blast, users by chance, and calls
// of one user, which wait for a reply of their own.
const (
	blastSeconds  = 2.2e-6
	randomSeconds = 6.1e-6
	singleSeconds = 25e-6
)

// decisionSeconds is Redis' time for a user of the blast: the more of a bucket's users it asks for,
// the less each of them takes.
func (l Load) decisionSeconds() float64 { return mix(l, blastSeconds, randomSeconds) }

// RedisCores is how many processors the masters' commands take together during the blast.
func (l Load) RedisCores() float64 { return l.Rate()*l.decisionSeconds() + l.Single*singleSeconds }
