package sizing

import (
	"fmt"
	"math"
)

// Plan lists the resources that a load requires.
type Plan struct {
	Load    Load     `json:"load"` // with its default values
	Figures []Figure `json:"figures"`
	Notes   []string `json:"notes,omitempty"`
}

// A Figure is a number in a plan, together with the text of the number's formula.
type Figure struct {
	Room    string  `json:"room"` // group of the number, such as Redis or Service
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`    // bytes, bytes/s, s or cores; "": a number without a unit
	Formula string  `json:"formula"` // formula with the measured constants
}

// The method Text formats the number of the figure for human readers.
func (f *Figure) Text() string {
	switch f.Unit {
	case "bytes":
		return bytesText(f.Value)
	case "bytes/s":
		return bytesText(f.Value) + "/s"
	case "s":
		return fmt.Sprintf("%.3g s", f.Value)
	case "cores":
		return fmt.Sprintf("%.2f cores", f.Value)
	}
	if f.Value != math.Trunc(f.Value) {
		return fmt.Sprintf("%.3g", f.Value)
	}
	return fmt.Sprintf("%.0f", f.Value)
}

func bytesText(n float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if n < 1000 {
			return fmt.Sprintf("%.3g %s", n, unit)
		}
		n /= 1024
	}
	return fmt.Sprintf("%.3g TiB", n)
}

// The function Of returns the plan of resources (memory, processors, disks) for a load. Call WithDefaults before Of. If
// the load is invalid, the error lists all invalid fields.
func Of(l Load) (*Plan, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	p := &Plan{Load: l}
	p.redis(l)
	p.service(l)
	p.network(l)
	p.disk(l)
	p.embedded(l)
	p.notes(l)
	return p, nil
}

func (p *Plan) add(room, name string, value float64, unit, formula string, args ...any) {
	p.Figures = append(p.Figures, Figure{room, name, value, unit, fmt.Sprintf(formula, args...)})
}

func (p *Plan) redis(l Load) {
	const room = "Redis"
	data := RedisData(l)
	if l.Spread() {
		p.add(room, "a user's logs", data/float64(l.Users), "bytes", "12 B per send + 20 B: %s ids are spread over "+
			"all buckets", l.IDs)
	} else {
		p.denseLogs(room, l, data)
	}
	p.add(room, "all logs, one copy", data, "bytes", "a user's logs × %d users", l.Users)
	p.add(room, "counts by message", RedisMessages(l), "bytes", "%g campaigns per day × %g days × 12 kB", l.Messages,
		l.Days)
	p.add(room, "masters", float64(l.Shards), "", "maximum of: all logs / 10 GiB, cores / 0.5; at least 3 in a "+
		"cluster, at most 64")
	p.add(room, "used_memory of the fullest master", RedisMaster(l), "bytes",
		"(logs + counts) × %.3g of the 64 partitions + 4 MiB + backlog", l.largestShare())
	p.add(room, "repl-backlog-size", Backlog(l), "bytes", "bytes that the blast writes to a master in a minute, or in "+
		"all if it is shorter; at least 64 MiB")
	p.add(room, "maxmemory of each server", Maxmemory(l), "bytes", "1.25 × used_memory of the fullest master")
	p.add(room, "machine of each server", RedisMachine(l), "bytes", "1.10 × maxmemory (fragmentation) + %s (copies "+
		"of changed buckets while the append-only file is rewritten)", bytesText(CopyOnWrite(l)))
	p.add(room, "all machines", RedisMachine(l)*float64(l.Shards*(1+l.Replicas)), "bytes",
		"machine of each server × %d masters × (1 + %d replicas)", l.Shards, l.Replicas)
	p.add(room, "cores during the blast, all masters", l.RedisCores(), "cores",
		"%.0f users/s × %.2g µs + %g calls/s × 25 µs; at most one core per master", l.Rate(),
		l.decisionSeconds()*1e6, l.Single)
	p.add(room, "share of the busiest master's core", l.RedisCores()*l.largestShare(), "",
		"at most %.2g; the rest is for replicas, the disk and a reserve", busy)
}

// denseLogs adds the size of a user's log to the plan, for dense ids (32-bit numbers).
func (p *Plan) denseLogs(room string, l Load, data float64) {
	p.add(room, "a user's logs", data/float64(l.Users), "bytes", "12 B per send + 5 B, and %d B + %d B per key "+
		"of 190 ids, rounded up to the allocator's sizes, at density %.3g", listpackBytes, keyBytes, l.Density)
}

func (p *Plan) service(l Load) {
	const room = "Service"
	json, bitmap := ServiceCores(l)
	p.add(room, "cores during the blast, JSON", json, "cores", "%.0f users/s × (0.10 + %.2g µs of Redis' client)",
		l.Rate(), mix(l, clientNear, clientFar)*1e6)
	p.add(room, "cores during the blast, bitmaps", bitmap, "cores", "%.0f users/s × (0.03 + %.2g µs of Redis' client)",
		l.Rate(), mix(l, clientNear, clientFar)*1e6)
	p.add(room, "calls in flight", CallsAtOnce(l), "", "parallel calls of 100,000 users and 0.2 s that the blast needs")
	p.add(room, "segments, each user in one", SegmentBytes(l), "bytes",
		"3 bits per id, twice during a refresh; sets need more memory")
	also := ""
	if l.Spread() {
		also = " + dictionary"
		p.add(room, "dictionary of ids", DictionaryBytes(l), "bytes", "6.3 B per id, twice during a refresh")
	}
	p.add(room, "memory of an instance, at most", ServiceMemory(l), "bytes", "2 × (512 + 512 MiB) + 64 B × "+
		"4,000,000 users + segments%s + 150 MiB (docs/operating.md, Memory)", also)
}

func (p *Plan) network(l Load) {
	const room = "Network during the blast"
	rate := l.Rate()
	id := l.idBytes()
	p.add(room, "API, JSON, each way", rate*id, "bytes/s", "%.0f B per requested user, and %.0f B per "+
		"allowed user back", id, id)
	short := "bitmaps"
	if l.Spread() {
		short = "packed ids"
	}
	if l.IDs != "text" { // text ids have no packed form
		p.add(room, "API, "+short+", each way", rate*BitmapBytes(l), "bytes/s", "%.2g B per user in base64",
			BitmapBytes(l))
	}
	p.add(room, "to Redis", rate*ToRedis(l), "bytes/s", "%.3g B per user", ToRedis(l))
	p.add(room, "from Redis", rate*FromRedis(l), "bytes/s", "%.3g B per user", FromRedis(l))
	p.add(room, "from masters to replicas", rate*ToReplicas(l), "bytes/s",
		"(12 B × (sends + 1) + %.3g B) per user × %d replicas", replicatedBytes(l)-entrySize*(l.Sends+1), l.Replicas)
}

func (p *Plan) disk(l Load) {
	const room = "Disk"
	p.add(room, "append-only file of each server", AppendOnly(l), "bytes",
		"3 × its data: a snapshot, the writes before the next rewrite, and the new file")
	if l.Spread() {
		p.add(room, "audit, a day", AuditDay(l), "bytes",
			"%g campaigns × %d users × %g B, + 44 B per call for one user", l.Messages, l.Blast, auditImage)
		return
	}
	p.add(room, "audit, a day", AuditDay(l), "bytes",
		"%g campaigns × %d users × up to 2 B, + 35 B per call for one user", l.Messages, l.Blast)
}

func (p *Plan) embedded(l Load) {
	const room = "Embedded store instead of Redis, on one machine"
	p.add(room, "disk", EmbeddedDisk(l), "bytes", "(12 B per send + %.2g B) × users × %.2g (before compaction) + %s "+
		"(write-ahead logs, allocated in advance)", l.embeddedUserBytes(), embeddedSpare,
		bytesText(embeddedBase))
	p.add(room, "additional memory of the service", 512<<20+200<<20, "bytes",
		"cache_size 512 MiB + 200 MiB; a larger cache if calls repeat users")
	p.add(room, "duration of the blast, cached", float64(l.Blast)/embeddedCached, "s",
		"%d users / 390,000 per second", l.Blast)
	p.add(room, "duration of the blast, not cached", float64(l.Blast)/embeddedCold, "s",
		"%d users / 60,000 per second", l.Blast)
}

// embeddedCached and embeddedCold are the numbers of users per second that the embedded store can decide, with and
// without cached logs (docs/benchmarks.md).
const embeddedCached, embeddedCold = 390_000, 60_000

func (p *Plan) notes(l Load) {
	if cores := l.RedisCores() * l.largestShare(); cores > busy {
		p.Notes = append(p.Notes, fmt.Sprintf("The busiest master needs %.0f %% of a core: plan more shards, or "+
			"a longer time for the blast.", 100*math.Min(cores, 9.99)))
	}
	if l.Replicas < 2 {
		p.Notes = append(p.Notes, "With fewer than two replicas, the loss of a server makes its users unavailable "+
			"until an operator restores it (docs/redis.md, Replicas).")
	}
	if l.Shards > 1 && l.Shards < 3 {
		p.Notes = append(p.Notes, "A Redis Cluster has at least three masters.")
	}
}
