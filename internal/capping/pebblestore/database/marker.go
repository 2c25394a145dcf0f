package database

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// The versions of the format that this program reads. It writes the newest.
const (
	oldestFormat = 1
	newestFormat = 2
)

// bucketSize is the number of users whose logs share a key. It is part of the
// format marker; see the store's doc.go for why it is 1.
const bucketSize = 1

// Marker is what stands at MarkerKey: it says how everything else is written.
func Marker(version int) string {
	return fmt.Sprintf("%s%d, bucket size %d, entries of %d bytes, epoch %d",
		markerStart, version, bucketSize, capping.EntrySize, int64(capping.EpochUnixMillis))
}

const markerStart = "capper embedded store, format "

// versionOf is the version that a marker names; 0: it is not a marker of capper.
func versionOf(marker string) (version int) {
	rest, ok := strings.CutPrefix(marker, markerStart)
	if !ok {
		return 0
	}
	if _, err := fmt.Sscanf(rest, "%d,", &version); err != nil {
		return 0
	}
	return version
}

// checkFormat writes the marker into an empty database, and demands of any
// other that its format is one that this program reads. It returns which.
func (d *DB) checkFormat() (version int, err error) {
	found, err := d.Lookup(MarkerKey)
	if err != nil {
		return 0, err
	}
	if found == nil {
		return newestFormat, d.markEmpty()
	}
	if err := d.loadUpgrade(); err != nil {
		return 0, err
	}
	version = versionOf(string(found))
	return version, checkReadable(string(found), d.upgrade.Load(), oldestFormat, newestFormat)
}

// checkReadable demands that a program which reads the formats from oldest to newest
// reads what is marked, also those of its logs that an upgrade has not reached.
func checkReadable(marker string, upgrade *upgrade, oldest, newest int) error {
	version := versionOf(marker)
	from := version
	if upgrade != nil && version <= newest {
		from = min(from, upgrade.From)
	}
	if version <= newest && from >= oldest && marker == Marker(version) {
		return nil
	}
	return &capping.FormatError{Marker: marker, Found: from, Oldest: oldest, Newest: newest, Want: Marker(newest)}
}

// markEmpty writes the marker into a database that holds nothing.
func (d *DB) markEmpty() error {
	it, err := d.NewIter(nil)
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if !empty {
		return &capping.FormatError{Oldest: oldestFormat, Newest: newestFormat, Want: Marker(newestFormat)}
	}
	return d.Set(MarkerKey, []byte(Marker(newestFormat)), pebble.Sync)
}

// upgrade is how far the logs of a store have been rewritten into the newest
// format.
type upgrade struct {
	From, To int
	Next     []byte // the key from which on there may be logs in an older format
}

// Upgrade is how far the rewriting is; nil: all logs are in the newest format, but those that cannot
// be read.
func (d *DB) Upgrade() *upgrade { return d.upgrade.Load() }

// upgradeKey has From (1) and Next while there may be logs in an older format.
var upgradeKey = []byte("\x00upgrade")

func (d *DB) loadUpgrade() error {
	value, err := d.Lookup(upgradeKey)
	if err != nil || value == nil {
		return err
	}
	if len(value) < 2 || value[1] != KeyLog {
		return fmt.Errorf("upgrade value %x: must be a version and the key of a log", value)
	}
	d.upgrade.Store(&upgrade{int(value[0]), newestFormat, value[1:]})
	return nil
}

// beginUpgrade makes the store one in the newest format, with its logs still to
// be rewritten, in one durable step. From then on no older program opens it.
func (d *DB) beginUpgrade(from int) error {
	if from == newestFormat {
		return nil
	}
	batch := d.NewBatch()
	defer batch.Close()
	upgrade := &upgrade{from, newestFormat, []byte{KeyLog}}
	_ = batch.Set(MarkerKey, []byte(Marker(newestFormat)), nil) // fails only for indexed batches
	_ = batch.Set(upgradeKey, upgrade.value(), nil)
	d.Commit(batch)
	d.upgrade.Store(upgrade)
	return d.Sync(context.Background())
}

// warning is what operators should know while the rewriting goes on.
func (u *upgrade) warning() string {
	return fmt.Sprintf("logs are being rewritten from format %d to %d, %d %% of user ids are done: versions of "+
		"capper that support only format %d can no longer open the store",
		u.From, u.To, u.percent(), u.From)
}

// percent is how much of the range of user ids is done.
func (u *upgrade) percent() int {
	user := append(slices.Clone(u.Next[1:]), 0, 0, 0, 0)
	return int(uint64(binary.BigEndian.Uint32(user)) * 100 >> 32)
}

func (u *upgrade) value() []byte { return append([]byte{byte(u.From)}, u.Next...) }

// NoteUpgraded remembers that the logs before a key are in the newest format;
// nil: all are. It is durable with, and never before, what was committed before.
func (d *DB) NoteUpgraded(next []byte) {
	batch := d.NewBatch()
	defer batch.Close()
	var after *upgrade
	if next == nil || next[0] != KeyLog {
		_ = batch.Delete(upgradeKey, nil) // fails only for indexed batches
	} else {
		after = &upgrade{d.upgrade.Load().From, newestFormat, slices.Clone(next)}
		_ = batch.Set(upgradeKey, after.value(), nil)
	}
	d.Commit(batch)
	d.upgrade.Store(after)
}
