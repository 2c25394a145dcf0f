package audit

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// A Dropped is a document with the numbers of an instance's audit files that a compaction removed because of their age.
// A Dropped document lies below OpenPrefix, where earlier versions of capper ignore objects that are not audit files.
type Dropped struct {
	Instance string    `json:"instance"` // "" in the document that records since when compactions note removed files
	Through  uint64    `json:"through"`  // files with this number and lower ones were removed
	At       time.Time `json:"at"`
}

// DroppedPrefix begins the object keys of all Dropped documents, which record the audit files that compactions removed.
const DroppedPrefix = OpenPrefix + "dropped/"

// DroppedKey returns the object key of an instance's Dropped document. If an audit location has any Dropped document,
// it also has a Dropped document of the instance "".
func DroppedKey(instance string) string {
	instance = cmp.Or(instance, "begun")
	return DroppedPrefix + instance + ".json"
}

// ParseDropped decodes the Dropped document that the audit location stores under the object key.
func ParseDropped(key string, raw []byte) (d Dropped, err error) {
	if err := Unseal(raw, &d); err != nil {
		return d, err
	}
	if DroppedKey(d.Instance) != key || d.Instance != "" && !IsInstance(d.Instance) {
		return d, fmt.Errorf(
			"list of removed audit files belongs to capper instance %q, but its object key names another instance",
			d.Instance)
	}
	return d, nil
}

// IsDroppedKey reports whether an object key has the form of a Dropped document's key.
func IsDroppedKey(key string) bool {
	name, inside := strings.CutPrefix(key, DroppedPrefix)
	instance, isJSON := strings.CutSuffix(name, ".json")
	return inside && isJSON && (IsInstance(instance) || key == DroppedKey(""))
}
