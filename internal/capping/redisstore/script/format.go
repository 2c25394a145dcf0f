package script

import (
	"fmt"
	"regexp"
	"strconv"

	"capper/internal/capping"
)

// Format is one version of the stored format. A program writes the newest version that all instances of the namespace
// read; see beat.lua.
type Format struct {
	Version int
	// Least is the least version that a program must know to read and write this format. It is the version of the
	// latest change that older programs would misread.
	Least int
}

// Formats lists the versions that a program knows, the oldest first, without a gap.
type Formats []Format

// Known lists the formats of dense stores that this program reads and writes.
//
//	1  the marker names version, bucket size, partitions and epoch; a program
//	   accepts only exactly its own marker
//	2  the marker also names the least version, so that a program can run beside
//	   newer ones whose changes do not concern it
//	3  calls change sets (live.lua); an older program would decide users without
//	   these changes. The logs of users are the same.
var Known = Formats{{Version: 1, Least: 1}, {Version: 2, Least: 2}, {Version: 3, Least: 3}}

// SpreadKnown lists the formats of spread stores that this program reads and writes.
//
//	4  the marker names the kind of ids, the check of their key and the depth
//	   instead of a bucket size; live changes are of 64-bit users
var SpreadKnown = Formats{{Version: 4, Least: 4}}

// LiveFormat is the first format whose programs all know live changes.
const LiveFormat = 3

// Oldest returns the oldest version that the program reads.
func (f Formats) Oldest() int { return f[0].Version }

// Newest returns the newest version, which the program writes as soon as every instance reads it.
func (f Formats) Newest() int { return f[len(f)-1].Version }

// String returns the range of versions that an instance reports in its heartbeat, such as "1-2".
func (f Formats) String() string { return strconv.Itoa(f.Oldest()) + "-" + strconv.Itoa(f.Newest()) }

// Marker is the format marker of a namespace: a key that names the version of the stored format. The key's TTL
// outlives the logs, so an unused keyspace becomes empty.
type Marker struct {
	Key     string
	Text    string // marker text of the newest format
	space   string // the marker's description of the keyspace
	ids     IDs
	formats Formats
}

// IDs describes the ids of a store's users in the format marker. The zero value means dense ids.
type IDs struct {
	Kind  string // name of the kind; "": dense
	Check string // check text of the kind and of the key that makes images
}

// String returns the description for errors.
func (i IDs) String() string {
	if i.Kind == "" {
		return "dense"
	}
	return fmt.Sprintf("%s (check %s)", i.Kind, i.Check)
}

// epoch is the date of instant 0 in log entries.
const epoch = "2024-01-01"

// NewMarker returns the marker of the keyspace in the namespace. ids describes the ids of a spread keyspace.
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

// StoreKey returns the key of the store's record.
func (m *Marker) StoreKey() string { return m.Key + ":store" }

// InstancesKey returns the key of the hash in which the instances describe themselves.
func (m *Marker) InstancesKey() string { return m.Key + ":instances" }

// Newest returns the newest format that this program knows.
func (m *Marker) Newest() int { return m.formats.Newest() }

// Formats returns the range of versions that the instances report in their heartbeats.
func (m *Marker) Formats() string { return m.formats.String() }

var (
	markerVersion = regexp.MustCompile(`^capper log (\d+) `)
	denseMarker   = regexp.MustCompile(`^capper log \d+ (?:least \d+ )?bucket \d+ `)
	spreadMarker  = regexp.MustCompile(`^capper log \d+ least \d+ ids (\S+) check (\S+) depth (\d+) `)
)

// idsOf returns the ids of the store with the marker found, and the depth of a spread store. ok is false for a text
// that is no marker.
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

// OtherDepth returns the depth in the marker found, if it is the marker of a store for the same ids with another depth
// that this program can use.
func (m *Marker) OtherDepth(found string) (depth int, ok bool) {
	ids, depth, ok := idsOf(found)
	if !ok || m.ids.Kind == "" || ids != m.ids || depth < MinDepth || depth > MaxDepth {
		return 0, false
	}
	other := NewMarker(Spread(depth), ids, "", m.formats)
	return depth, found == other.Text && found != m.Text
}

// Refusal returns the error for a marker that this program cannot accept.
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
