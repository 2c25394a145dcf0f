package script

import "strconv"

// Marker is the format marker: which version of the stored format the logs
// have. It has a TTL that outlives theirs, so that an idle keyspace empties.
type Marker struct{ Key, Text string }

const formatVersion = 1

// epoch names the instant 0 of entries.
const epoch = "2024-01-01"

// NewMarker is the marker of the keyspace in the namespace.
func NewMarker(k Keyspace, namespace string) Marker {
	return Marker{
		Key: namespace + ":{" + FormatTag + "}",
		Text: "capper log " + strconv.Itoa(formatVersion) + " bucket " + strconv.Itoa(int(k.BucketSize)) +
			" partitions " + strconv.Itoa(k.Partitions) + " epoch " + epoch,
	}
}

// FormatError is that the keyspace was written by another version.
type FormatError struct{ Found, Want string }

// Error is a sentence for operators.
func (e *FormatError) Error() string {
	return "the stored format is " + strconv.Quote(e.Found) + ", this version reads and writes " + strconv.Quote(e.Want) +
		": use the version of capper that wrote it, or another namespace or cluster"
}
