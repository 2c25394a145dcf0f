package database

import (
	"bytes"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Lookup is a copy of the key's value, nil when the key is absent.
func (d *DB) Lookup(key []byte) ([]byte, error) {
	value, closer, err := d.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if pebble.IsCorruptionError(err) {
		return d.lookupUnfiltered(key, err)
	}
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(value)), value...), closer.Close()
}

// lookupUnfiltered is Lookup without the tables' filters, one of which may be
// all that was found damaged.
func (d *DB) lookupUnfiltered(key []byte, damage error) (value []byte, err error) {
	it, err := d.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.SeekGE(key) && bytes.Equal(it.Key(), key) {
		value = slices.Clone(it.Value())
	}
	if it.Error() != nil {
		return nil, damage
	}
	return value, nil
}
