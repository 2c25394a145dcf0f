package database

import (
	"fmt"
	"regexp"
)

// IDs says which ids the users of a store have. The zero value means dense ids. Users of all other kinds are 64-bit
// images.
type IDs struct {
	Kind string `json:"kind"` // name of the kind, such as "uuid"; "" and "dense": dense ids
	// Check is a text for the kind and for the key that makes images from ids, so that a store rejects another key. It
	// is required for all kinds but dense, and "" for dense.
	Check string `json:"check"`
}

const denseKind = "dense"

// String returns the ids for errors.
func (i IDs) String() string {
	if i == (IDs{}) {
		return denseKind
	}
	return fmt.Sprintf("%s (check %s)", i.Kind, i.Check)
}

// word is the form of a kind and of a check in the format marker.
var word = regexp.MustCompile(`^[0-9A-Za-z_-]+$`)

// checked returns the ids with the zero value for dense ids, and an error for a kind or a check that the format marker
// cannot hold.
func (i IDs) checked() (IDs, error) {
	if i.Kind == "" || i.Kind == denseKind {
		if i.Check != "" {
			return i, fmt.Errorf("ids: the check of dense ids must be empty, got %q", i.Check)
		}
		return IDs{}, nil
	}
	if !word.MatchString(i.Kind) || !word.MatchString(i.Check) {
		return i, fmt.Errorf("ids: kind %q and check %q must consist of letters and digits", i.Kind, i.Check)
	}
	return i, nil
}

// Pointer returns nil for dense ids, so that the stored form has no field for them.
func (i IDs) Pointer() *IDs {
	if i == (IDs{}) {
		return nil
	}
	return &i
}

// value returns the ids in a stored form.
func (i *IDs) value() IDs {
	if i == nil {
		return IDs{}
	}
	return *i
}

// IDs returns the ids of the store's users.
func (d *DB) IDs() IDs { return d.config.IDs }

// checkKnownIDs returns an error when the file beside the directory names other ids. The format marker in the database
// is authoritative, but Pebble must open and write its files before the marker can be read.
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
