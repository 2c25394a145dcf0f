package pebblestore

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/capping/storetest"
	"capper/internal/live"
	"capper/internal/messages/messagestest"
)

// uuids is the ids of the tests' stores for images.
var uuids = IDs{Kind: "uuid", Check: "1a2b3c4d"}

// childKind is the environment variable with the kind of the ids in the store of a child process.
const childKind = "CAPPER_TEST_KIND"

func childIDs() IDs { return idsOfKind(os.Getenv(childKind)) }

func idsOfKind(kind string) IDs {
	if kind == "" || kind == "dense" {
		return IDs{}
	}
	return IDs{Kind: kind, Check: uuids.Check}
}

// factor makes images of numbers, and inverse makes numbers of images: their product is 1.
const factor, inverse = 0x9e3779b97f4a7c15, 0xf1de83e19937733d

// imageOf returns the image of a number. The smallest and the largest dense ids get the smallest and the largest image.
func imageOf(n capping.UserID) capping.UserID {
	if n == capping.MaxDense {
		return math.MaxUint64
	}
	return n * factor
}

func imagesOf(numbers []capping.UserID) []capping.UserID {
	users := make([]capping.UserID, len(numbers))
	for i, n := range numbers {
		users[i] = imageOf(n)
	}
	return users
}

func numberOf(image capping.UserID) capping.UserID {
	if image == math.MaxUint64 {
		return capping.MaxDense
	}
	return image * inverse
}

// images is a store for images whose callers use numbers. Each number stands for its image.
type images struct{ *Store }

// Filter decides the images of the batch's users.
func (i images) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	mapped := *b
	mapped.Users = imagesOf(b.Users)
	return i.Store.Filter(ctx, &mapped, verdicts)
}

// Release removes sends to the images of users.
func (i images) Release(ctx context.Context, token capping.Token, channel capping.Channel, users []capping.UserID,
	released []capping.Released) error {
	return i.Store.Release(ctx, token, channel, imagesOf(users), released)
}

// Merge merges the logs of the images of users.
func (i images) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	mapped := *m
	mapped.Users = imagesOf(m.Users)
	return i.Store.Merge(ctx, &mapped, merged)
}

// Erase erases the image of the user.
func (i images) Erase(ctx context.Context, user capping.UserID) error {
	return i.Store.Erase(ctx, imageOf(user))
}

// Log returns the log of the user's image.
func (i images) Log(ctx context.Context, user capping.UserID) (capping.Log, error) {
	return i.Store.Log(ctx, imageOf(user))
}

// imageTarget is a target whose callers use numbers, except in changes to sets and in decisions about them.
type imageTarget struct{ target }

// Filter decides the images of the batch's users.
func (i imageTarget) Filter(ctx context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	mapped := *b
	mapped.Users = imagesOf(b.Users)
	return i.target.Filter(ctx, &mapped, verdicts)
}

// Release removes sends to the images of users.
func (i imageTarget) Release(ctx context.Context, token capping.Token, channel capping.Channel,
	users []capping.UserID, released []capping.Released) error {
	return i.target.Release(ctx, token, channel, imagesOf(users), released)
}

// Merge merges the logs of the images of users.
func (i imageTarget) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	mapped := *m
	mapped.Users = imagesOf(m.Users)
	return i.target.Merge(ctx, &mapped, merged)
}

// person returns the user with the number in the store.
func person(s *Store, n capping.UserID) capping.UserID {
	if s.runs.ofImages() {
		return imageOf(n)
	}
	return n
}

// persons returns the users with the numbers in the store, ascending for a store for images.
func persons(s *Store, numbers []capping.UserID) []capping.UserID {
	if !s.runs.ofImages() {
		return numbers
	}
	users := imagesOf(numbers)
	slices.Sort(users)
	return users
}

func openImages(t *testing.T, clock func() time.Time) images {
	s := reopen(t, Config{Path: t.TempDir(), IDs: uuids, Clock: clock})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return images{s}
}

// The suites expect the same answers from a store for images as from one for dense ids.
func TestStoreOfImages(t *testing.T) {
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store { return openImages(t, clock) })
}

func TestPoliciesOfImages(t *testing.T) {
	t.Parallel()
	storetest.RunPolicies(t, func(t *testing.T, clock func() time.Time) capping.Store { return openImages(t, clock) })
}

func TestCampaignsOfImages(t *testing.T) {
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return images{openMessages(t, clock, uuids)}
	})
}

// TestOtherIDs opens stores with other ids than their own. Open must name both and leave the files as they are.
func TestOtherIDs(t *testing.T) {
	t.Parallel()
	others := map[IDs]string{{}: "dense", uuids: "uuid (check 1a2b3c4d)", {Kind: "uuid", Check: "9"}: "uuid (check 9)",
		{Kind: "text", Check: uuids.Check}: "text (check 1a2b3c4d)"}
	for own, ownText := range others {
		config := Config{Path: filepath.Join(t.TempDir(), "db"), IDs: own}
		used(t, config, "m")
		files := contents(t, filepath.Dir(config.Path))
		for other, text := range others {
			if other == own {
				continue
			}
			_, err := Open(t.Context(), Config{Path: config.Path, IDs: other})
			require.ErrorContains(t, err, "the store has ids of the kind "+ownText)
			require.ErrorContains(t, err, "but the configuration has ids of the kind "+text)
			require.Equal(t, files, contents(t, filepath.Dir(config.Path)))
		}
		// The format marker decides when the file beside the directory is gone.
		id, err := os.ReadFile(config.Path + ".id")
		require.NoError(t, err)
		require.NoError(t, os.Remove(config.Path+".id"))
		for other, text := range others {
			if other == own {
				continue
			}
			_, err := Open(t.Context(), Config{Path: config.Path, IDs: other})
			var refusal *capping.FormatError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, []string{ownText, text}, []string{refusal.IDs, refusal.WantIDs})
			require.NoFileExists(t, config.Path+".id")
		}
		require.NoError(t, os.WriteFile(config.Path+".id", id, 0o600))
		s := reopen(t, config)
		require.Equal(t, own, s.IDs())
		require.Len(t, logOf(t, s, 7), 1)
		require.NoError(t, s.Close())
	}
}

// contents returns the content of each file below the directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = string(content)
		return err
	}))
	return found
}

// TestInvalidIDs checks that Open rejects ids that the marker cannot hold, and creates nothing.
func TestInvalidIDs(t *testing.T) {
	t.Parallel()
	for _, ids := range []IDs{{Kind: "uuid"}, {Kind: "dense", Check: "1"}, {Kind: "a b", Check: "1"},
		{Kind: "uuid", Check: "1,2"}} {
		dir := filepath.Join(t.TempDir(), "db")
		_, err := Open(t.Context(), Config{Path: dir, IDs: ids})
		require.ErrorContains(t, err, "of ")
		require.NoDirExists(t, dir)
	}
	s := reopen(t, Config{Path: t.TempDir(), IDs: IDs{Kind: "dense"}})
	require.Equal(t, IDs{}, s.IDs())
	require.NoError(t, s.Close())
}

// TestMarkerOfImages checks the stored bytes of a store for images, which must never change, and that programs that
// know formats up to 3 take them for those of a newer version.
func TestMarkerOfImages(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir(), IDs: uuids})
	_, err := filterAll(s, "m", 0x0102030405060708)
	require.NoError(t, err)
	changeSet(t, s, adding(0x0102030405060708))
	marker, err := s.db.Lookup(database.MarkerKey)
	require.NoError(t, err)
	require.Equal(t, "capper embedded store, format 4, ids uuid, check 1a2b3c4d, users of 8 bytes, entries of 12 "+
		"bytes, epoch 1704067200000", string(marker))
	value, err := s.db.Lookup([]byte{database.KeyLog, 1, 2, 3, 4, 5, 6, 7, 8})
	require.NoError(t, err)
	require.Len(t, value, logHeader+capping.EntrySize)

	newer := strings.Replace(string(marker), "format 4", "format 5", 1)
	require.NoError(t, s.db.Set(database.MarkerKey, []byte(newer), pebble.Sync))
	config := Config{Path: s.db.Health(t.Context()).Path, IDs: uuids}
	require.NoError(t, s.Close())
	refused(t, config, "have format 5, which a newer version of capper wrote", "reads format 4 only")
}

// TestImagesInADenseStore checks that a store for dense ids rejects images, of which it would store a part.
func TestImagesInADenseStore(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir()})
	const image = 1<<32 + 7
	const says = "user id must be at most 4294967295 in a store for dense ids (32-bit integers), got 4294967303"
	_, err := filterAll(s, "m", 7, image)
	require.ErrorContains(t, err, says)
	require.ErrorContains(t, s.Release(t.Context(), capping.Message{ID: "m"}.Token(), 0, []capping.UserID{image},
		make([]capping.Released, 1)), says)
	m := capping.MergeOf([]capping.Sent{{User: image, Entry: capping.Entry{At: 1, Token: capping.Token{1}}}})
	m.Retention = 7 * 24 * time.Hour
	require.ErrorContains(t, s.Merge(t.Context(), m, make([]capping.Merged, 1)), says)
	require.ErrorContains(t, s.Erase(t.Context(), image), says)
	_, err = s.Log(t.Context(), image)
	require.ErrorContains(t, err, says)
	stored, err := s.Change(t.Context(), adding(7, image))
	require.ErrorContains(t, err, says)
	require.Len(t, stored.Unstored, 2)
	require.Empty(t, logOf(t, s, 7))
	require.NoError(t, s.Close())
}

// TestChangesOfImages checks changes to sets of images after packing, a restart, a backup and a restore.
func TestChangesOfImages(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "db"), IDs: uuids, SweepInterval: time.Hour}
	s := reopen(t, config)
	users := persons(s, manyUsers(5000))
	changeSet(t, s, adding(users...))
	for _, user := range users[:packFrom+10] {
		changeSet(t, s, &live.Batch{Set: "opted-out", Remove: []capping.UserID{user}})
	}
	changeSet(t, s, adding(0, math.MaxUint64))
	want := changesOf(s)
	require.Len(t, want["opted-out"], 5001)
	packAll(t, s)
	require.NoError(t, s.Close())
	s = reopen(t, config)
	require.Equal(t, want, changesOf(s))
	_, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	archive := archiveOf(t, s)
	require.NoError(t, s.Close())

	restored := Config{Path: filepath.Join(t.TempDir(), "db"), IDs: uuids}
	m, err := database.Restore(bytes.NewReader(archive), restored.Path, false, time.Now())
	require.NoError(t, err)
	require.Equal(t, &uuids, m.IDs)
	require.Equal(t, 2, m.Version, "which older programs reject")
	_, err = Open(t.Context(), Config{Path: restored.Path})
	require.ErrorContains(t, err, "says that the store has ids of the kind uuid (check 1a2b3c4d)")
	s = reopen(t, restored)
	require.Equal(t, want, changesOf(s))
	verdicts, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	requireAll(t, capping.Replayed, verdicts)
	require.NoError(t, s.Close())
}

// TestLogsOfImages reads all logs in portions, as a migration does.
func TestLogsOfImages(t *testing.T) {
	t.Parallel()
	s := reopen(t, Config{Path: t.TempDir(), IDs: uuids})
	users := append(persons(s, manyUsers(1000)), math.MaxUint64)
	_, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	var read []capping.UserID
	for from := capping.UserID(0); ; {
		some, logs, err := s.Logs(t.Context(), from, 100)
		require.NoError(t, err)
		require.Len(t, logs, len(some))
		read = append(read, some...)
		if len(some) < 100 {
			break
		}
		from = some[99] + 1
	}
	require.Equal(t, users, read)
	require.NoError(t, s.Close())
}

// TestSweepOfImages checks that the sweep removes expired logs of images.
func TestSweepOfImages(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s := reopen(t, Config{Path: t.TempDir(), IDs: uuids, Clock: clock.Now, SweepInterval: time.Hour})
	_, err := filterAll(s, "m", persons(s, manyUsers(3000))...)
	require.NoError(t, err)
	clock.Advance(8 * 24 * time.Hour)
	_, err = filterAll(s, "n", imageOf(5))
	require.NoError(t, err)
	sweepAll(t, s)
	users, _, err := s.Logs(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Equal(t, []capping.UserID{imageOf(5)}, users)
	require.NoError(t, s.Close())
}
