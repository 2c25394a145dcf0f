package audit

import (
	"fmt"
	"strings"
	"time"
)

// Dropped says which files of an instance a compaction took away, because they were too old. It lies below
// OpenPrefix, where earlier versions look for files of records alone and take other objects for their own.
type Dropped struct {
	Instance string    `json:"instance"` // "" of the document that says since when such documents are written
	Through  uint64    `json:"through"`  // files with this number and lower ones
	At       time.Time `json:"at"`
}

// DroppedPrefix begins the keys of documents of Dropped.
const DroppedPrefix = OpenPrefix + "dropped/"

// DroppedKey is where the document of an instance lies; of "" the one that every location with such documents has.
func DroppedKey(instance string) string {
	if instance == "" {
		instance = "begun"
	}
	return DroppedPrefix + instance + ".json"
}

// ParseDropped reads the document of a key.
func ParseDropped(key string, raw []byte) (d Dropped, err error) {
	if err := Unseal(raw, &d); err != nil {
		return d, err
	}
	if DroppedKey(d.Instance) != key || d.Instance != "" && !IsInstance(d.Instance) {
		return d, fmt.Errorf("list of removed files belongs to instance %q", d.Instance)
	}
	return d, nil
}

// IsDroppedKey reports whether a document of Dropped may lie there.
func IsDroppedKey(key string) bool {
	name, inside := strings.CutPrefix(key, DroppedPrefix)
	instance, isJSON := strings.CutSuffix(name, ".json")
	return inside && isJSON && (IsInstance(instance) || key == DroppedKey(""))
}
