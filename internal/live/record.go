package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"capper/internal/capping"
)

// Record is the stored form of an API call that changes a set. A Record contains the changes that one client made to
// one set. If a Record comes from Lists.Pack, it contains the changes of several calls of the client.
type Record struct {
	Set, By string
	Runs    []Run
}

// A Run holds the changes of a Record that have the same time. Users[k] contains the users with live changes (changes
// by API calls) of kind k, in strictly ascending order.
type Run struct {
	At    capping.Instant
	Users [kinds][]capping.UserID
}

// RecordOf converts a batch (an API call) to a Record; all changes in the Record get the time "at". The Record and
// the batch share the memory of their lists of users.
func RecordOf(b *Batch, at capping.Instant) *Record {
	run := Run{At: at}
	run.Users[Added], run.Users[Removed], run.Users[Forgotten] = b.Add, b.Remove, b.Forget
	return &Record{Set: b.Set, By: b.By, Runs: []Run{run}}
}

// Len returns the number of changes in the record.
func (r *Record) Len() (n int) {
	for i := range r.Runs {
		for _, users := range r.Runs[i].Users {
			n += len(users)
		}
	}
	return n
}

// SplitBy divides the record by the result of the function "number" for each user, for example into one record for each
// partition.
func (r *Record) SplitBy(number func(capping.UserID) int) map[int]*Record {
	parts := map[int]*Record{}
	for i := range r.Runs {
		run := &r.Runs[i]
		for kind, users := range run.Users {
			for _, user := range users {
				n := number(user)
				part := parts[n]
				if part == nil {
					part = &Record{Set: r.Set, By: r.By}
					parts[n] = part
				}
				to := part.run(run.At)
				to.Users[kind] = append(to.Users[kind], user)
			}
		}
	}
	return parts
}

// The method "run" returns the last Run (changes with the same time) of the record if it has the time "at". If the
// record has no such Run, the method "run" appends and returns a new Run.
func (r *Record) run(at capping.Instant) *Run {
	if n := len(r.Runs); n == 0 || r.Runs[n-1].At != at {
		r.Runs = append(r.Runs, Run{At: at})
	}
	return &r.Runs[len(r.Runs)-1]
}

// These constants are the format versions of a stored Record of live changes (changes of sets by API calls). In the
// stored form of a Record, all numbers except times are encoded as in encoding/binary's Uvarint:
//
//	1 or 2                     version of the format: 2 if a user's number has more than 32 bits
//	length, bytes              name of the set
//	length, bytes              name of the client
//	number of runs, then for each run
//	  instant (5, big endian)
//	  for each kind, from Forgotten: number of users, first user, differences to the previous user
const (
	recordVersion = 1
	wideVersion   = 2
)

// RecordBytes is the maximum size in bytes of a record that Pack returns.
const RecordBytes = 4096

const instantBytes = 5

// AppendRecord appends the stored form of the record to dst.
func AppendRecord(dst []byte, r *Record) []byte {
	version := byte(recordVersion)
	if r.isWide() {
		version = wideVersion
	}
	dst = append(dst, version)
	dst = appendText(dst, r.Set)
	dst = appendText(dst, r.By)
	dst = binary.AppendUvarint(dst, uint64(len(r.Runs)))
	for i := range r.Runs {
		dst = appendInstant(dst, r.Runs[i].At)
		for _, users := range r.Runs[i].Users {
			dst = appendUsers(dst, users)
		}
	}
	return dst
}

// isWide reports whether at least one user in the record has a number of more than 32 bits.
func (r *Record) isWide() bool {
	for i := range r.Runs {
		for _, users := range r.Runs[i].Users {
			if n := len(users); n > 0 && users[n-1]>>32 > 0 {
				return true
			}
		}
	}
	return false
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendInstant(dst []byte, at capping.Instant) []byte {
	return append(dst, byte(at>>32), byte(at>>24), byte(at>>16), byte(at>>8), byte(at))
}

func appendUsers(dst []byte, users []capping.UserID) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(users)))
	last := capping.UserID(0)
	for _, user := range users {
		dst = binary.AppendUvarint(dst, uint64(user-last))
		last = user
	}
	return dst
}

// DecodeRecord decodes the stored form of a record. If AppendRecord cannot have created the bytes, DecodeRecord
// returns an error.
func DecodeRecord(raw []byte) (*Record, error) {
	d := decoder{rest: raw, most: math.MaxUint32}
	version := d.byte()
	if d.err == nil && version != recordVersion && version != wideVersion {
		return nil, fmt.Errorf("decode the stored changes of a set: the version must be %d or %d, got %d",
			recordVersion, wideVersion, version)
	}
	if version == wideVersion {
		d.most = math.MaxUint64
	}
	r := &Record{Set: d.text(), By: d.text()}
	runs := d.count(instantBytes + kinds)
	for range runs {
		run := Run{At: d.instant()}
		for kind := range run.Users {
			run.Users[kind] = d.users()
		}
		r.Runs = append(r.Runs, run)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("%d bytes follow the end of the record", len(d.rest))
	}
	if d.err == nil && r.isWide() != (version == wideVersion) {
		d.err = fmt.Errorf("a record of version %d must have at least one user id above %d",
			version, uint32(math.MaxUint32))
	}
	if d.err != nil {
		return nil, fmt.Errorf("decode the stored changes of a set: %w", d.err)
	}
	return r, nil
}

// AppendFreed appends the stored form of the argument "freed" to dst. The argument "freed" holds, for each set, the
// time up to which the store has removed live changes (changes by API calls).
func AppendFreed(dst []byte, freed map[string]capping.Instant) []byte {
	dst = append(dst, recordVersion)
	names := make([]string, 0, len(freed))
	for name := range freed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		dst = appendInstant(appendText(dst, name), freed[name])
	}
	return dst
}

// DecodeFreed decodes the result of AppendFreed: for each set, the time up to which live changes (changes by API calls)
// were removed. For an empty slice, DecodeFreed returns an empty map.
func DecodeFreed(raw []byte) (map[string]capping.Instant, error) {
	freed := map[string]capping.Instant{}
	if len(raw) == 0 {
		return freed, nil
	}
	d := decoder{rest: raw}
	if version := d.byte(); version != recordVersion {
		return nil, fmt.Errorf(
			"decode the times up to which changes of sets were removed: the format version must be %d, got %d",
			recordVersion, version)
	}
	for d.err == nil && len(d.rest) > 0 {
		name := d.text()
		freed[name] = d.instant()
	}
	if d.err != nil {
		return nil, fmt.Errorf("decode the times up to which changes of sets were removed: %w", d.err)
	}
	return freed, nil
}

var errShort = errors.New("the bytes end too early")

// A decoder reads the stored form of a Record or of removal times. After the first error, all methods of a decoder
// return zero values.
type decoder struct {
	rest []byte
	most uint64 // maximum user id
	err  error
}

func (d *decoder) take(n int) []byte {
	if d.err == nil && n > len(d.rest) {
		d.err = errShort
	}
	if d.err != nil {
		return nil
	}
	taken := d.rest[:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) number() uint64 {
	if d.err != nil {
		return 0
	}
	n, size := binary.Uvarint(d.rest)
	if size <= 0 || size > 1 && d.rest[size-1] == 0 {
		d.err = errors.New("a number is not valid")
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// The method "count" decodes the number of the elements that follow. The argument "size" is the minimum number of bytes
// of an element, so that the method "count" can reject a number that is too large.
func (d *decoder) count(size int) int {
	n := d.number()
	if d.err == nil && n > uint64(len(d.rest)/size) {
		d.err = errShort
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return string(d.take(d.count(1))) }

func (d *decoder) instant() (at capping.Instant) {
	for _, b := range d.take(instantBytes) {
		at = at<<8 | capping.Instant(b)
	}
	return at
}

func (d *decoder) users() []capping.UserID {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	users := make([]capping.UserID, n)
	last := uint64(0)
	for i := range users {
		step := d.number()
		if d.err == nil && (step > d.most-last || step == 0 && i > 0) {
			d.err = fmt.Errorf("user ids must ascend and be at most %d", d.most)
			return nil
		}
		last += step
		users[i] = capping.UserID(last)
	}
	return users
}
