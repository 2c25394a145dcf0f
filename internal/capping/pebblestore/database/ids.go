package database

import (
	"fmt"
	"regexp"
)

// IDs says which kind of ids the users in a store have. The zero IDs means dense ids (numbers from 0 to 4294967295).
// With any other kind of ids, the store knows users by id images (64-bit numbers that stand for their ids).
type IDs struct {
	Kind string `json:"kind"` // name of the kind, such as "uuid"; "" and "dense": dense ids
	// Check is a word that changes with the kind of ids and with the key that makes id images. A store rejects a
	// configuration with another word. Check is required for every kind except dense, and must be "" for dense ids.
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

// word is a pattern that matches texts which the format marker can hold as the kind of ids or as the check word of
// their key.
var word = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)

// checked returns the IDs in the form that the store compares: for dense ids (32-bit integers), the zero
// IDs. If the format marker (value that names the version of the stored format) cannot hold the kind of ids or the
// check word, checked returns an error.
func (i IDs) checked() (IDs, error) {
	if i.Kind == "" || i.Kind == denseKind {
		if i.Check != "" {
			return i, fmt.Errorf(
				"ids: dense ids have no key, so the field \"check\" (fingerprint of the key) must be empty, got %q",
				i.Check)
		}
		return IDs{}, nil
	}
	if !word.MatchString(i.Kind) || !word.MatchString(i.Check) {
		return i, fmt.Errorf("ids: kind %q and fingerprint of the key (check) %q must consist of letters and digits",
			i.Kind, i.Check)
	}
	return i, nil
}

// Pointer returns a pointer to the IDs, or nil for dense ids, so that the JSON form has no field for them.
func (i IDs) Pointer() *IDs {
	if i == (IDs{}) {
		return nil
	}
	return &i
}

// value is the inverse of Pointer: it returns the IDs to which a pointer from Pointer refers.
func (i *IDs) value() IDs {
	if i == nil {
		return IDs{}
	}
	return *i
}

// IDs returns which kind of ids the users in the store have.
func (d *DB) IDs() IDs { return d.config.IDs }

// checkKnownIDs returns an error if the file PATH.id beside the directory names another kind or key of ids. Only the
// format marker in the database says reliably which ids a store has. checkKnownIDs looks at the file nevertheless,
// because Pebble must open and write its files before the marker can be read.
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
