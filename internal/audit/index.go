package audit

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
)

// Entry is the index entry of a rolled file: a JSON document from which a reader sees
// whether it needs the file.
type Entry struct {
	Format   int    `json:"format"`
	Instance string `json:"instance"`
	Number   uint64 `json:"number"` // the file's, of those of the instance
	Key      string `json:"key"`    // where the file is in the location
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"size_bytes"`

	Records       uint64    `json:"records"`
	Lost          uint64    `json:"lost"`
	FirstSequence uint64    `json:"first_sequence"` // lost ones included
	LastSequence  uint64    `json:"last_sequence"`
	First         time.Time `json:"first"` // the earliest At
	Last          time.Time `json:"last"`  // the latest At plus Took
	Recovered     bool      `json:"recovered,omitempty"`

	Generations []string       `json:"generations"` // sorted
	Configs     []string       `json:"config_versions"`
	Kinds       map[string]int `json:"kinds"` // records by kind
	// Messages are the tokens of the messages, in hex digits, sorted; ManyMessages: there are
	// more than MaxMessages, and Messages is empty.
	Messages     []string `json:"messages,omitempty"`
	ManyMessages bool     `json:"many_messages,omitempty"`
}

// MaxMessages is the most messages of a file that its entry lists.
const MaxMessages = 4096

// String is the kind's name.
func (k Kind) String() string {
	switch k {
	case Filter:
		return "filter"
	case Release:
		return "release"
	case Pace:
		return "permits"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Erasure is users who were erased. Nothing of them from before At is shown.
type Erasure struct {
	Key   string           `json:"key,omitempty"` // its own, so that it cannot stand for another
	Users []capping.UserID `json:"user_ids"`
	At    time.Time        `json:"at"`
}

// Prefixes of the keys of a location.
const (
	RecordsPrefix  = "records/"
	IndexPrefix    = "index/"
	PoliciesPrefix = "policies/"
	ErasedPrefix   = "erased/"
	OpenPrefix     = "open/"
)

// LockName is the file that an instance holds locked beside its open ones while it lives.
const LockName = "lock"

// FileExtension ends the names of files of records.
const FileExtension = ".audit"

// Day is the day of an instant, in UTC, as it stands in keys.
func Day(at time.Time) string { return at.UTC().Format(time.DateOnly) }

// RecordsKey is where a file lies whose first record is of the day.
func RecordsKey(day, sha256 string) string { return RecordsPrefix + day + "/" + sha256 + FileExtension }

// IndexKey is where the entry lies of the n-th file of an instance.
func IndexKey(day, instance string, n uint64) string {
	return fmt.Sprintf("%s%s/%s-%d.json", IndexPrefix, day, instance, n)
}

// PolicyKey is where the policy of a configuration version lies.
func PolicyKey(version string) string { return PoliciesPrefix + version + ".yaml" }

// ErasedKey is where the n-th erasure of an instance lies.
func ErasedKey(instance string, n uint64) string {
	return fmt.Sprintf("%s%s-%d.json", ErasedPrefix, instance, n)
}

// ParseErasedKey is whose erasure lies there, and its number.
func ParseErasedKey(key string) (instance string, n uint64, ok bool) {
	name, _ := strings.CutSuffix(strings.TrimPrefix(key, ErasedPrefix), ".json")
	instance, number, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 10, 64)
	return instance, n, err == nil && IsInstance(instance) && ErasedKey(instance, n) == key
}

var instanceRule = regexp.MustCompile(`^[0-9a-f]{8,32}$`)

// IsInstance reports whether an instance may be called so.
func IsInstance(text string) bool { return instanceRule.MatchString(text) }
