package ingest

import (
	"slices"
	"strings"
	"time"
)

// The method "date" records the as_of of a segment or set: the time up to which the input files reflect all changes.
// The as_of is the earlier of two times: the time of the newest input file, and the earliest as_of of the segments and
// sets to which the definition refers. The argument "read" of the method "date" contains the reports about the input
// files of the definition itself.
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
	if len(times) > 0 { // otherwise the set has no input, and the as_of is unknown
		b.asOf[r.Name] = slices.MinFunc(append(times, b.reader.cfg.Now), time.Time.Compare).UTC().
			Truncate(time.Millisecond)
	}
}

// The function "newest" returns the time of the last write to the newest input file. If the time of the last write is
// unknown for one of the files, the function "newest" returns the zero time.
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
