package capping

import "fmt"

// FormatError is that a store's bytes are in a format that this program does
// not read. Nothing was changed in it.
type FormatError struct {
	Marker string // the stored format marker; "": none, in a store that is not empty
	Found  int    // the version that the marker names; 0: it is no marker of capper's
	Oldest int    // the oldest version that this program reads
	Newest int    // the newest one, which it writes
	Want   string // the marker of the newest one
}

// Error names both versions and says what to do.
func (e *FormatError) Error() string {
	reads := fmt.Sprintf("this version of capper reads the formats %d to %d", e.Oldest, e.Newest)
	if e.Oldest == e.Newest {
		reads = fmt.Sprintf("this version of capper reads format %d only", e.Newest)
	}
	switch {
	case e.Marker == "":
		return "there is data without capper's format marker: not a capper store"
	case e.Found > e.Newest:
		return fmt.Sprintf("the logs are in format %d, which a newer version of capper wrote, and %s: "+
			"start the newer version again; there is no way back but a copy from before it (format marker %q)", e.Found, reads, e.Marker)
	case e.Found > 0 && e.Found < e.Oldest:
		return fmt.Sprintf("the logs are in format %d, and %s: "+
			"start a version that reads both and let it finish the upgrade first (format marker %q)", e.Found, reads, e.Marker)
	}
	return fmt.Sprintf("the stored format marker is %q, and this version of capper reads and writes %q: the store belongs to another build", e.Marker, e.Want)
}
