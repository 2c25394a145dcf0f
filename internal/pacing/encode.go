package pacing

import (
	"errors"
	"fmt"
)

// RunSize is the size of an encoded Run in bytes. The encoding of a Run has the fields At (7 bytes), Every (5), Burst
// (3) and First (6), big endian.
const RunSize = 7 + 5 + 3 + 6

// AppendRun appends the encoded run to dst.
func AppendRun(dst []byte, r Run) []byte {
	dst = appendUint(dst, uint64(r.At), 7)
	dst = appendUint(dst, uint64(r.Every), 5)
	dst = appendUint(dst, uint64(r.Burst), 3)
	return appendUint(dst, uint64(r.First), 6)
}

func appendUint(dst []byte, v uint64, n int) []byte {
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// DecodeRuns decodes the field Runs of a Log. The argument "total" of DecodeRuns becomes Log.Total (the number of
// permits that the runs have ever had). DecodeRuns returns an error for runs (series of permits) that no log can
// contain.
func DecodeRuns(data []byte, total int64) (*Log, error) {
	if len(data)%RunSize != 0 {
		return nil, fmt.Errorf("stored pacer log: the size must be a multiple of %d bytes, got %d", RunSize, len(data))
	}
	l := &Log{Total: total}
	for ; len(data) > 0; data = data[RunSize:] {
		l.Runs = append(l.Runs, Run{
			At: Time(readUint(data[:7])), Every: int64(readUint(data[7:12])),
			Burst: int64(readUint(data[12:15])), First: int64(readUint(data[15:21])),
		})
	}
	return l, l.check()
}

func readUint(data []byte) (v uint64) {
	for _, b := range data {
		v = v<<8 | uint64(b)
	}
	return v
}

var errRuns = errors.New("stored pacer log is damaged: its permits are not valid, or not sorted by time")

// The method "check" returns an error if l is not a valid log.
func (l *Log) check() error {
	for i := range l.Runs {
		r := &l.Runs[i]
		if r.Burst < 1 || r.Every == 0 && r.Burst != 1 || l.end(i) <= r.First {
			return errRuns
		}
		latest := r.slot(l.end(i) - 1 - r.First)
		if latest < r.At || i+1 < len(l.Runs) && latest > l.Runs[i+1].At {
			return errRuns
		}
	}
	return nil
}

// StrandSize is the size of an encoded Strand in bytes. The encoding of a Strand has the fields At (7 bytes), Every
// (5), Burst (3) and Permits (3), big endian.
const StrandSize = 7 + 5 + 3 + 3

// The method Append appends the encoded strands (series of slots) to dst.
func (a Ahead) Append(dst []byte) []byte {
	for i := range a {
		dst = appendUint(dst, uint64(a[i].At), 7)
		dst = appendUint(dst, uint64(a[i].Every), 5)
		dst = appendUint(dst, uint64(a[i].Burst), 3)
		dst = appendUint(dst, uint64(a[i].Permits), 3)
	}
	return dst
}

// DecodeAhead decodes strands (series of slots), and adds them to the field Ahead of the log. DecodeAhead returns an
// error for strands (series of slots) that cannot occur in this log.
func (l *Log) DecodeAhead(data []byte) error {
	newest, _ := l.newest()
	if len(data)%StrandSize != 0 || len(data) > MostAhead*StrandSize {
		return errRuns
	}
	for ; len(data) > 0; data = data[StrandSize:] {
		s := Strand{
			At: Time(readUint(data[:7])), Every: int64(readUint(data[7:12])),
			Burst: int64(readUint(data[12:15])), Permits: int64(readUint(data[15:18])),
		}
		if s.Burst < 1 || s.Every == 0 && s.Burst != 1 || s.Permits < 1 || s.At < newest || s.newest() < s.At {
			return errRuns
		}
		l.Ahead = append(l.Ahead, s)
	}
	return nil
}

// Remembered is a grant that a store keeps, so that a repeated request gets the same permits again.
type Remembered struct {
	Fingerprint [8]byte // the fingerprint of the ask
	More        bool    // the same as Grant.More
	Log                 // the granted permits, numbered from 0
}

// RememberedHeader is the size in bytes of the header before the encoded runs of a Remembered (stored grant). The
// header of a Remembered has the fields Fingerprint (8 bytes), More (1) and Total (6).
const RememberedHeader = 8 + 1 + 6

// The method Append appends the encoded grant to dst: first the header, then the runs of the granted permits.
func (r *Remembered) Append(dst []byte) []byte {
	dst = append(dst, r.Fingerprint[:]...)
	more := byte(0)
	if r.More {
		more = 1
	}
	dst = appendUint(append(dst, more), uint64(r.Total), 6)
	for _, run := range r.Runs {
		dst = AppendRun(dst, run)
	}
	return dst
}

// DecodeRemembered decodes a grant that Remembered.Append encoded.
func DecodeRemembered(data []byte) (*Remembered, error) {
	if len(data) < RememberedHeader || data[8] > 1 {
		return nil, errors.New("stored record of granted permits is not valid")
	}
	log, err := DecodeRuns(data[RememberedHeader:], int64(readUint(data[9:15])))
	if err != nil {
		return nil, err
	}
	if log.first() != 0 {
		return nil, errRuns
	}
	return &Remembered{Fingerprint: [8]byte(data[:8]), More: data[8] == 1, Log: *log}, nil
}
