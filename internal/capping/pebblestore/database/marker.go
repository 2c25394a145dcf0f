package database

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// These constants are the versions of the stored format that this program reads. A new store, and a store whose logs
// this program rewrites, has the version logFormat. After the first live change (change of a set by an API call), the
// store has the version changesFormat. Programs that know only logFormat would ignore live changes, and therefore do
// not open a store with changesFormat.
const (
	oldestFormat  = 1
	logFormat     = 2
	changesFormat = 3
	newestFormat  = changesFormat
)

// imageFormat is the version of a store whose users are id images (64-bit numbers that stand for ids). The constant
// imageFormat is above the versions of stores with dense ids, so that programs for dense ids do not open the store. A
// store for id images always has the version imageFormat, with or without live changes (changes by API calls).
const imageFormat = 4

// bucketSize is the number of users whose logs share one database key. The format marker of a store contains this
// number. docs/design/embedded.md explains the value 1.
const bucketSize = 1

// The function Marker returns the format marker (the value of MarkerKey) of stores with dense ids, for one version of
// the format. The format version describes the layout of all keys except MarkerKey.
func Marker(version int) string {
	return fmt.Sprintf("%s%d, bucket size %d, entries of %d bytes, epoch %d",
		markerStart, version, bucketSize, capping.EntrySize, int64(capping.EpochUnixMillis))
}

const markerStart = "capper embedded store, format "

// imageMarker returns the format marker of a store that knows users by id images (64-bit numbers that stand for ids).
// The store keeps the marker under MarkerKey.
func imageMarker(ids IDs) string {
	return fmt.Sprintf("%s%d, ids %s, check %s, users of %d bytes, entries of %d bytes, epoch %d", markerStart,
		imageFormat, ids.Kind, ids.Check, imageWidth, capping.EntrySize, int64(capping.EpochUnixMillis))
}

var imageMarkerText = regexp.MustCompile(`, ids (\S+), check (\S+), `)

// idsOf returns the kind of ids in the format marker (value that names the version of the stored format) of a store. If
// this program does not know the format marker, the result "ok" is false.
func idsOf(marker string) (ids IDs, ok bool) {
	switch version := versionOf(marker); {
	case version == imageFormat:
		if match := imageMarkerText.FindStringSubmatch(marker); match != nil {
			ids = IDs{Kind: match[1], Check: match[2]}
		}
		return ids, marker == imageMarker(ids)
	default:
		return IDs{}, oldestFormat <= version && version <= newestFormat && marker == Marker(version)
	}
}

// newMarker returns the format marker for a new store, and the format version in this marker.
func (d *DB) newMarker() (marker string, version int) {
	if d.wide {
		return imageMarker(d.config.IDs), imageFormat
	}
	return Marker(logFormat), logFormat
}

// versionOf returns the version of the stored format from a format marker, or 0 if the argument is not a format marker
// of capper.
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

// checkFormat checks the format marker of the database, and returns the format version. If the database is empty,
// checkFormat writes a marker. If this program cannot read the format, checkFormat returns an error.
func (d *DB) checkFormat() (version int, err error) {
	found, err := d.Lookup(MarkerKey)
	if err != nil {
		return 0, err
	}
	marker, newest := d.newMarker()
	if found == nil {
		return newest, d.markEmpty(marker)
	}
	if ids, known := idsOf(string(found)); known && ids != d.config.IDs {
		return 0, &capping.FormatError{Marker: string(found), IDs: ids.String(), WantIDs: d.config.IDs.String()}
	}
	if err := d.loadUpgrade(); err != nil {
		return 0, err
	}
	version = versionOf(string(found))
	if d.wide {
		if string(found) != marker {
			err = &capping.FormatError{Marker: string(found), Found: version, Oldest: newest, Newest: newest,
				Want: marker}
		}
		return version, err
	}
	d.changes.Store(version == changesFormat)
	return version, checkReadable(string(found), d.upgrade.Load(), oldestFormat, newestFormat)
}

// checkReadable returns an error if a program that knows the format versions from "oldest" to "newest" cannot read a
// store with this marker. During an upgrade, the program must also know the format of the logs that the upgrade has not
// rewritten yet.
func checkReadable(marker string, upgrade *upgrade, oldest, newest int) error {
	version := versionOf(marker)
	from := version
	if upgrade != nil && version <= newest {
		from = min(from, upgrade.From)
	}
	if version <= newest && from >= oldest && marker == Marker(version) {
		return nil
	}
	return &capping.FormatError{Marker: marker, Found: from, Oldest: oldest, Newest: newest, Want: Marker(logFormat)}
}

// markEmpty writes the format marker (value that names the version of the stored format) into an empty database. If the
// database is not empty, markEmpty returns an error.
func (d *DB) markEmpty(marker string) error {
	it, err := d.NewIter(nil)
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if !empty {
		return &capping.FormatError{Oldest: oldestFormat, Newest: newestFormat, Want: marker}
	}
	return d.Set(MarkerKey, []byte(marker), pebble.Sync)
}

// HasChanges reports whether a live change (change of a set by an API call) was ever written to the store. For a store
// of id images (64-bit hashes of ids), HasChanges always returns true, because the format marker of these stores does
// not show live changes.
func (d *DB) HasChanges() bool { return d.changes.Load() }

// If the store does not have the format version for live changes yet, MarkChanges adds a format marker with this
// version to the batch. The caller of MarkChanges must commit the batch.
func (d *DB) MarkChanges(batch *pebble.Batch) {
	if !d.changes.Swap(true) {
		_ = batch.Set(MarkerKey, []byte(Marker(changesFormat)), nil) // fails only for indexed batches
	}
}

// The type "upgrade" is the progress of rewriting users' logs in the newest format.
type upgrade struct {
	From, To int
	Next     []byte // logs at and after this key may be in an older format
}

// The method Upgrade returns the progress of rewriting users' logs in the newest format, or nil if all readable logs
// are in the newest format.
func (d *DB) Upgrade() *upgrade { return d.upgrade.Load() }

// upgradeKey is the database key of the upgrade's progress (the fields From and Next). The upgrade's key exists only
// while logs in an older format may exist.
var upgradeKey = []byte("\x00upgrade")

func (d *DB) loadUpgrade() error {
	value, err := d.Lookup(upgradeKey)
	if err != nil || value == nil {
		return err
	}
	if len(value) < 2 || value[1] != KeyLog {
		return fmt.Errorf(
			"stored upgrade record %x must consist of a one-byte format number and the key of a user's stored sends",
			value)
	}
	d.upgrade.Store(&upgrade{int(value[0]), logFormat, value[1:]})
	return nil
}

// beginUpgrade starts an upgrade of the stored format. In one durable step, beginUpgrade writes the marker of the
// newest log format and the progress of the upgrade. After beginUpgrade, older programs cannot open the store.
func (d *DB) beginUpgrade(from int) error {
	if from >= logFormat {
		return nil
	}
	batch := d.NewBatch()
	defer batch.Close()
	upgrade := &upgrade{from, logFormat, []byte{KeyLog}}
	_ = batch.Set(MarkerKey, []byte(Marker(logFormat)), nil) // fails only for indexed batches
	_ = batch.Set(upgradeKey, upgrade.value(), nil)
	d.Commit(batch)
	d.upgrade.Store(upgrade)
	return d.Sync(context.Background())
}

// The method "warning" returns a text for operators about the upgrade in progress.
func (u *upgrade) warning() string {
	return fmt.Sprintf("logs are being rewritten from format %d to %d, %d %% of user ids are done: versions of "+
		"capper that support only format %d can no longer open the store",
		u.From, u.To, u.percent(), u.From)
}

// The method "percent" returns the percentage of all possible user ids that the upgrade has already covered.
func (u *upgrade) percent() int {
	user := append(slices.Clone(u.Next[1:]), 0, 0, 0, 0)
	return int(uint64(binary.BigEndian.Uint32(user)) * 100 >> 32)
}

func (u *upgrade) value() []byte { return append([]byte{byte(u.From)}, u.Next...) }

// NoteUpgraded records that all logs with keys before the key "next" are in the newest format. If "next" is nil, all
// logs in the database are in the newest format. The record of NoteUpgraded becomes durable together with all earlier
// commits, or after them.
func (d *DB) NoteUpgraded(next []byte) {
	batch := d.NewBatch()
	defer batch.Close()
	var after *upgrade
	if next == nil || next[0] != KeyLog {
		_ = batch.Delete(upgradeKey, nil) // fails only for indexed batches
	} else {
		after = &upgrade{d.upgrade.Load().From, logFormat, slices.Clone(next)}
		_ = batch.Set(upgradeKey, after.value(), nil)
	}
	d.Commit(batch)
	d.upgrade.Store(after)
}
