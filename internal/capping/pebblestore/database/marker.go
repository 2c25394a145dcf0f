package database

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// Format is the record that says how everything else is written. A store
// whose record is another one cannot be read by this program.
func Format() string {
	return fmt.Sprintf("capper embedded store, format 1, bucket size %d, entries of %d bytes, epoch %d",
		bucketSize, capping.EntrySize, int64(capping.EpochUnixMillis))
}

// checkFormat writes the format record into an empty database and demands it
// of any other.
func (d *DB) checkFormat() error {
	found, err := d.Lookup(FormatKey)
	if err != nil {
		return err
	}
	if found == nil {
		empty, err := d.isEmpty()
		if err != nil {
			return err
		}
		if !empty {
			return errors.New("a database without capper's format record: not a capper store")
		}
		return d.Set(FormatKey, []byte(Format()), pebble.Sync)
	}
	if string(found) != Format() {
		return fmt.Errorf("its format record is %q, this version reads only %q", found, Format())
	}
	return nil
}

func (d *DB) isEmpty() (bool, error) {
	it, err := d.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}
