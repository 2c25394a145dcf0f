package ingest

import (
	"slices"
	"strings"
	"time"
)

// date records the as_of of a segment or set, that is, the time up to which its input files reflect all changes. The
// as_of is the earlier of two times: the time of the newest input file, and the earliest as_of of the segments and sets
// to which the definition refers. The argument "read" of the method date lists the input files that the definition
// itself names.
func (b *builder) date(r *Definition, read []FileReport) {
	files := slices.Clone(read)
	if b.rows[r.Name] != nil {
		files = append(files, b.tables...)
	}
	for prefix, of := range b.prefix {
		if strings.HasPrefix(r.Name, prefix) {
			files = append(files, of...)
		}
	}
	var times []time.Time
	if len(files) > 0 {
		times = append(times, newest(files))
	}
	for _, ref := range r.refs() {
		times = append(times, b.asOf[ref])
	}
	if len(times) > 0 { // otherwise nothing names the set, and its time is unknown
		b.asOf[r.Name] = slices.MinFunc(append(times, b.reader.cfg.Now), time.Time.Compare).UTC().
			Truncate(time.Millisecond)
	}
}

// newest returns the time at which the newest of the input files was written. If the write time of one of
// the files is unknown, newest returns the zero time.
func newest(files []FileReport) (at time.Time) {
	for _, f := range files {
		if f.ChangedAt == nil {
			return time.Time{}
		}
		if f.ChangedAt.After(at) {
			at = *f.ChangedAt
		}
	}
	return at
}
