package script

import (
	"fmt"
	"regexp"
	"strconv"

	"capper/internal/capping"
)

// A Format is one version of the format in which the store keeps its data in Redis. The program writes the newest
// version of the format that all instances of the namespace can read; see beat.lua.
type Format struct {
	Version int
	// Least is the lowest version that a program must know to read and write this format. Least is the version of the
	// latest change that older programs would misread.
	Least int
}

// Formats lists the versions of the stored format that a program knows: the oldest first, and without a gap.
type Formats []Format

// Known lists the formats of stores with dense ids (32-bit integers) that this program reads and writes.
//
//	1  the marker names version, bucket size, partitions and epoch; a program
//	   accepts only exactly its own marker
//	2  the marker also names the least version, so that a program can run beside
//	   newer ones whose changes do not concern it
//	3  calls change sets (live.lua); an older program would decide users without
//	   these changes. The logs of users are the same.
var Known = Formats{{Version: 1, Least: 1}, {Version: 2, Least: 2}, {Version: 3, Least: 3}}

// SpreadKnown lists the formats of stores with other ids (spread keyspaces) that this program reads and writes.
//
//	4  the marker names the kind of ids, the check of their key and the depth
//	   instead of a bucket size; live changes are of 64-bit users
var SpreadKnown = Formats{{Version: 4, Least: 4}}

// LiveFormat is the first version of the stored format in which a store may have live changes (changes of sets by API
// calls). Every program that can use this version of the format knows live changes.
const LiveFormat = 3

// The method Oldest returns the oldest version of the stored format that the program reads.
func (f Formats) Oldest() int { return f[0].Version }

// The method Newest returns the newest format version. A program writes data in its newest format version as soon as
// every instance can read that version.
func (f Formats) Newest() int { return f[len(f)-1].Version }

// String returns the format versions that a program reads, such as "1-2", for its heartbeat.
func (f Formats) String() string { return strconv.Itoa(f.Oldest()) + "-" + strconv.Itoa(f.Newest()) }

// A Marker is the format marker of a namespace: a Redis key whose value names the version of the stored format. The
// format marker has a longer TTL than the logs. All keys of a store expire if the store is not used any more.
type Marker struct {
	Key     string
	Text    string // marker text of the newest format
	space   string // the marker's description of the keyspace
	ids     IDs
	formats Formats
}

// IDs is the part of the format marker (value that names the version of the stored format) with the kind of the user
// ids in a store. The zero IDs means dense ids (32-bit integers).
type IDs struct {
	Kind  string // name of the kind of ids; "": dense
	Check string // check word of the kind and of the key that makes images
}

// String describes the kind of ids, for error texts.
func (i IDs) String() string {
	if i.Kind == "" {
		return "dense"
	}
	return fmt.Sprintf("%s (check %s)", i.Kind, i.Check)
}

// The constant "epoch" is the date of Instant 0 in log entries.
const epoch = "2024-01-01"

// NewMarker returns the format marker (value that names the version of the stored format) of a store, for the given
// namespace and keyspace. For a spread keyspace (a store whose ids are not dense), the argument "ids" describes the
// ids.
func NewMarker(k Keyspace, ids IDs, namespace string, formats Formats) Marker {
	layout := fmt.Sprint("bucket ", k.BucketSize)
	if k.IsSpread() {
		layout = fmt.Sprintf("ids %s check %s depth %d", ids.Kind, ids.Check, k.Depth)
	}
	m := Marker{
		Key:     namespace + ":{" + FormatTag + "}",
		space:   fmt.Sprintf("%s partitions %d epoch %s", layout, k.Partitions, epoch),
		ids:     ids,
		formats: formats,
	}
	newest := formats[len(formats)-1]
	m.Text = fmt.Sprintf("capper log %d least %d %s", newest.Version, newest.Least, m.space)
	if newest.Version == 1 {
		m.Text = "capper log 1 " + m.space
	}
	return m
}

// StoreKey returns the Redis key of the record with the creation time of the store.
func (m *Marker) StoreKey() string { return m.Key + ":store" }

// InstancesKey returns the Redis key of a hash with the last heartbeat and the description of every instance.
func (m *Marker) InstancesKey() string { return m.Key + ":instances" }

// The method Newest returns the newest version of the stored format that this program knows.
func (m *Marker) Newest() int { return m.formats.Newest() }

// Formats returns the format versions that this program reads, such as "1-2", for its heartbeat.
func (m *Marker) Formats() string { return m.formats.String() }

var (
	markerVersion = regexp.MustCompile(`^capper log (\d+) `)
	denseMarker   = regexp.MustCompile(`^capper log \d+ (?:least \d+ )?bucket \d+ `)
	spreadMarker  = regexp.MustCompile(`^capper log \d+ least \d+ ids (\S+) check (\S+) depth (\d+) `)
)

// idsOf decodes the text of a format marker, and returns the kind of ids and, for a spread keyspace (for ids that are
// not dense), the depth. If the text is not a format marker (value that names the version of the stored format), the
// result "ok" is false.
func idsOf(found string) (ids IDs, depth int, ok bool) {
	if denseMarker.MatchString(found) {
		return IDs{}, 0, true
	}
	match := spreadMarker.FindStringSubmatch(found)
	if match == nil {
		return IDs{}, 0, false
	}
	depth, err := strconv.Atoi(match[3])
	return IDs{Kind: match[1], Check: match[2]}, depth, err == nil
}

// OtherDepth returns the depth (number of bits that choose the bucket) in the format marker "found", for a store that
// was created with another depth. If the marker "found" and the marker m differ only in the depth, and this program can
// use the depth, the result "ok" of OtherDepth is true.
func (m *Marker) OtherDepth(found string) (depth int, ok bool) {
	ids, depth, ok := idsOf(found)
	if !ok || m.ids.Kind == "" || ids != m.ids || depth < MinDepth || depth > MaxDepth {
		return 0, false
	}
	other := NewMarker(Spread(depth), ids, "", m.formats)
	return depth, found == other.Text && found != m.Text
}

// Refusal returns the error for a store whose format marker (value that names the version of the stored format) this
// program cannot accept.
func (m *Marker) Refusal(found string) *capping.FormatError {
	e := &capping.FormatError{Marker: found, Oldest: m.formats.Oldest(), Newest: m.formats.Newest(), Want: m.Text}
	if match := markerVersion.FindStringSubmatch(found); match != nil {
		e.Found, _ = strconv.Atoi(match[1])
	}
	if ids, _, ok := idsOf(found); ok {
		e.IDs, e.WantIDs = ids.String(), m.ids.String()
	}
	return e
}
