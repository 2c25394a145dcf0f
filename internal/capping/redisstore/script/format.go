package script

import (
	"fmt"
	"regexp"
	"strconv"

	"capper/internal/capping"
)

// Format is a version of what is stored. A program writes the newest that all
// instances which use the namespace read; see beat.lua.
type Format struct {
	Version int
	// Least is the least version that a program has to know to read and write
	// along: that of the latest change that others would misread.
	Least int
}

// Formats are those that a program knows, oldest first, without a gap.
type Formats []Format

// Known are the formats of this program.
//
//	1  the marker names version, bucket size, partitions and epoch; a program
//	   takes it only when it is its own to the letter
//	2  the marker names the least version beside its own, so that a program goes
//	   on beside newer ones that change nothing for it
var Known = Formats{{Version: 1, Least: 1}, {Version: 2, Least: 2}}

// Oldest is the oldest version that is read.
func (f Formats) Oldest() int { return f[0].Version }

// Newest is the version that is written as soon as everybody reads it.
func (f Formats) Newest() int { return f[len(f)-1].Version }

// String is how an instance tells the others what it reads: "1-2".
func (f Formats) String() string { return strconv.Itoa(f.Oldest()) + "-" + strconv.Itoa(f.Newest()) }

// Marker is the format marker of a namespace: which version of the stored
// format it is in. It has a TTL that outlives the logs', so that an idle
// keyspace empties.
type Marker struct {
	Key     string
	Text    string // of the newest format
	space   string // what the marker says of the keyspace
	formats Formats
}

// epoch names the instant 0 of entries.
const epoch = "2024-01-01"

// NewMarker is the marker of the keyspace in the namespace.
func NewMarker(k Keyspace, namespace string, formats Formats) Marker {
	m := Marker{
		Key:     namespace + ":{" + FormatTag + "}",
		space:   fmt.Sprintf("bucket %d partitions %d epoch %s", k.BucketSize, k.Partitions, epoch),
		formats: formats,
	}
	newest := formats[len(formats)-1]
	m.Text = fmt.Sprintf("capper log %d least %d %s", newest.Version, newest.Least, m.space)
	if newest.Version == 1 {
		m.Text = "capper log 1 " + m.space
	}
	return m
}

// StoreKey is the key of the store's record.
func (m *Marker) StoreKey() string { return m.Key + ":store" }

// InstancesKey is the key under which the instances tell of themselves.
func (m *Marker) InstancesKey() string { return m.Key + ":instances" }

// Newest is the newest format that the program of the marker knows.
func (m *Marker) Newest() int { return m.formats.Newest() }

// Formats is how its instances tell the others what they read.
func (m *Marker) Formats() string { return m.formats.String() }

var markerVersion = regexp.MustCompile(`^capper log (\d+) `)

// Refusal is that this program does not take the marker that was found.
func (m *Marker) Refusal(found string) *capping.FormatError {
	e := &capping.FormatError{Marker: found, Oldest: m.formats.Oldest(), Newest: m.formats.Newest(), Want: m.Text}
	if match := markerVersion.FindStringSubmatch(found); match != nil {
		e.Found, _ = strconv.Atoi(match[1])
	}
	return e
}
