package audit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
)

// An Entry is the index entry of a complete audit file: a JSON document that tells a reader whether the file can hold
// the wanted records.
type Entry struct {
	Format   int    `json:"format"`
	Instance string `json:"instance"`
	Number   uint64 `json:"number"` // number of the file within the instance
	Key      string `json:"key"`    // key of the file in the location
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"size_bytes"`

	Records       uint64    `json:"records"`
	Lost          uint64    `json:"lost"`
	FirstSequence uint64    `json:"first_sequence"` // including lost records
	LastSequence  uint64    `json:"last_sequence"`
	First         time.Time `json:"first"` // earliest At
	Last          time.Time `json:"last"`  // latest At plus Took
	Recovered     bool      `json:"recovered,omitempty"`

	Generations []string       `json:"generations"` // sorted
	Configs     []string       `json:"config_versions"`
	Kinds       map[string]int `json:"kinds"` // number of records by kind
	// Messages lists the tokens (hashes of the ids) of the file's messages, in hex digits, sorted. If the file has more
	// than MaxMessages messages, ManyMessages is true and Messages is empty.
	Messages     []string `json:"messages,omitempty"`
	ManyMessages bool     `json:"many_messages,omitempty"`
}

// MaxMessages is the maximum number of messages that the index entry of an audit file lists.
const MaxMessages = 4096

// String returns the name of the kind of call that an audit record describes.
func (k Kind) String() string {
	switch k {
	case Filter:
		return "filter"
	case Release:
		return "release"
	case Pace:
		return "permits"
	case Change:
		return "set_change"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// An Erasure is a document that lists users whose data was erased. Readers hide the users of an Erasure in all audit
// records that are older than the field At of the Erasure.
type Erasure struct {
	Key   string           `json:"key,omitempty"` // key of this document, so that it cannot replace another
	Users []capping.UserID `json:"user_ids"`      // id images, unless the ids are dense
	At    time.Time        `json:"at"`
	Kind  string           `json:"ids,omitempty"` // kind of the ids, unless they are dense; with the check of the key
	Check string           `json:"ids_check,omitempty"`
}

// These constants are the prefixes of the object keys at an audit location, one prefix for each type of object.
const (
	RecordsPrefix  = "records/"
	IndexPrefix    = "index/"
	PoliciesPrefix = "policies/"
	ErasedPrefix   = "erased/"
	OpenPrefix     = "open/"
)

// LockName is the name of the lock file in an instance's directory of open audit files. A running instance keeps the
// lock file locked.
const LockName = "lock"

// FileExtension is the ending of the names of files that hold audit records.
const FileExtension = ".audit"

// Day returns the UTC date of an instant, in the form that the object keys of the audit contain.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// RecordsKey returns the object key of an audit file, from the day of its first record and its SHA-256.
func RecordsKey(day, sha256 string) string { return RecordsPrefix + day + "/" + sha256 + FileExtension }

// IndexKey returns the object key of the index entry for the audit file with the number n of an instance.
func IndexKey(day, instance string, n uint64) string {
	return fmt.Sprintf("%s%s/%s-%d.json", IndexPrefix, day, instance, n)
}

// PolicyKey returns the object key under which an audit location stores the policy of a configuration version.
func PolicyKey(version string) string { return PoliciesPrefix + version + ".yaml" }

// ErasedKey returns the object key of the erasure with the number n that an instance wrote.
func ErasedKey(instance string, n uint64) string {
	return fmt.Sprintf("%s%s-%d.json", ErasedPrefix, instance, n)
}

// ParseErasedKey returns the instance and the number of the erasure that an object key contains.
func ParseErasedKey(key string) (instance string, n uint64, ok bool) {
	name, _ := strings.CutSuffix(strings.TrimPrefix(key, ErasedPrefix), ".json")
	instance, number, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return instance, n, err == nil && IsInstance(instance) && ErasedKey(instance, n) == key
}

var instanceRule = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// IsInstance reports whether a text has the form of an instance name.
func IsInstance(text string) bool { return instanceRule.MatchString(text) }
