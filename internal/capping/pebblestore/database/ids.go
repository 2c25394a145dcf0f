package database

import (
	"fmt"
	"regexp"
)

// IDs is the kind of the user ids in a store. The zero IDs means dense ids (numbers from 0 to 4294967295). For any
// other kind of ids, the store identifies users by id images (64-bit numbers that stand for ids).
type IDs struct {
	Kind string `json:"kind"` // name of the kind, such as "uuid"; "" and "dense": dense ids
	// Check is a fingerprint of the kind of ids and of the key that makes id images. A store rejects a configuration
	// with another fingerprint. Check is required for every kind except dense, and must be "" for dense ids.
	Check string `json:"check"`
}

const denseKind = "dense"

// String returns a description of the ids for error texts.
func (i IDs) String() string {
	if i == (IDs{}) {
		return denseKind
	}
	return fmt.Sprintf("%s (check %s)", i.Kind, i.Check)
}

// The format marker (value that names the version of the stored format) holds the kind of ids and the check word of
// their key. The pattern "word" matches all texts that are allowed there.
var word = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)

// The method "checked" returns the IDs in the form that the store compares: for dense ids (32-bit integers), the zero
// IDs. If the kind of ids or the check word is not an allowed text for the format marker, the method "checked" returns
// an error.
func (i IDs) checked() (IDs, error) {
	if i.Kind == "" || i.Kind == denseKind {
		if i.Check != "" {
			return i, fmt.Errorf(
				"ids: the field 'check' (fingerprint of the hash key) must be empty for ids of the kind 'dense', "+
					"got %q",
				i.Check)
		}
		return IDs{}, nil
	}
	if !word.MatchString(i.Kind) || !word.MatchString(i.Check) {
		return i, fmt.Errorf(
			"ids: the kind %q and the hash key's fingerprint %q must consist of letters, digits, '-' and '_'",
			i.Kind, i.Check)
	}
	return i, nil
}

// Pointer returns a pointer to the IDs, or nil for dense ids, so that the JSON form has no field for dense ids.
func (i IDs) Pointer() *IDs {
	if i == (IDs{}) {
		return nil
	}
	return &i
}

// The method "value" is the inverse of Pointer: the method "value" returns the IDs of a pointer, and the zero IDs for
// nil.
func (i *IDs) value() IDs {
	if i == nil {
		return IDs{}
	}
	return *i
}

// The method IDs returns the kind of the user ids in the store.
func (d *DB) IDs() IDs { return d.config.IDs }

// checkKnownIDs returns an error if the file PATH.id beside the directory names another kind or key of ids. Only the
// format marker (value that names the version of the stored format) in the database is reliable. The method
// checkKnownIDs checks the file first, because the marker can be read only after Pebble has opened and written its
// files.
func (c Config) checkKnownIDs() error {
	known, err := c.readIdentityFile()
	if err != nil || known == nil {
		return err
	}
	if ids := known.IDs.value(); ids != c.IDs {
		return fmt.Errorf(
			"file %s says that the store has ids of the kind %s, but the configuration has ids of the kind %s: "+
				"use the segments location that belongs to the store, or an empty directory",
			c.identityFile(), ids, c.IDs)
	}
	return nil
}
