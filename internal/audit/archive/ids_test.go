package archive_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
)

func openDir(t testing.TB) objects.Location {
	at, err := objects.Open(t.Context(), t.TempDir(), objects.S3Config{})
	require.NoError(t, err)
	return at
}

// randomRecord is a call of a few messages for users below 60.
func randomRecord(r *rand.Rand, n int) *audit.Record {
	at := begun + capping.Instant(n)*second
	message, channel := fmt.Sprint("m", r.IntN(3)), capping.Channel(1+r.IntN(2))
	outcomeOf := map[uint32]int{}
	for range 1 + r.IntN(30) {
		user := r.Uint32N(60)
		outcomeOf[user] = r.IntN(3)
	}
	var byOutcome [3][]uint32
	for user, outcome := range outcomeOf {
		byOutcome[outcome] = append(byOutcome[outcome], user)
	}
	record := send(at, message, channel)
	record.Groups = nil
	outcomes := []audit.Outcome{audit.Allowed, audit.Replayed, audit.Unavailable}
	if r.IntN(3) == 0 {
		record.Kind = audit.Release
		record.Channel *= capping.Channel(r.IntN(2))
		outcomes = []audit.Outcome{audit.Released, audit.Absent, audit.ReleaseUnavailable}
	}
	for i, outcome := range outcomes {
		if users := byOutcome[i]; len(users) > 0 {
			record.Groups = append(record.Groups, audit.Group{Outcome: outcome, Users: bitmap.Of(users...)})
		}
	}
	return record
}

// both is one history in a location of dense ids and in one of images.
type both struct {
	dense, wide               objects.Location
	denseArchive, wideArchive *archive.Archive
}

func newBoth(t testing.TB, r *rand.Rand) *both {
	b := &both{dense: openDir(t), wide: openDir(t)}
	dense, wide := audittest.NewWriter(b.dense, 1), audittest.NewWriter(b.wide, 1)
	wide.IDs = audittest.IDs()
	for n := 0; n < 40; {
		var list, images []*audit.Record
		for range 1 + r.IntN(6) {
			record := randomRecord(r, n)
			list, images = append(list, record), append(images, audittest.OfImages(record))
			n++
		}
		if n >= 40 {
			dense.Open(t, 0, audittest.Frames(list...)...)
			wide.Open(t, 0, audittest.Frames(images...)...)
			break
		}
		dense.Roll(t, audittest.Frames(list...)...)
		wide.Roll(t, audittest.Frames(images...)...)
	}
	for n := range uint64(1 + r.IntN(4)) {
		var users, images []capping.UserID
		for range 1 + r.IntN(20) {
			user := r.Uint32N(60)
			users, images = append(users, capping.UserID(user)), append(images, audittest.Image(user))
		}
		when := begun + capping.Instant(r.IntN(50))*second
		audittest.Erase(t, b.dense, n, when, users...)
		audittest.EraseOf(t, b.wide, wide.IDs, n, when, images...)
	}
	b.reopen()
	return b
}

// reopen forgets what the archives know of the locations.
func (b *both) reopen() {
	b.denseArchive, b.wideArchive = open(b.dense), open(b.wide).Of(audittest.IDs())
}

// records returns the records of an archive with dense ids.
func records(t testing.TB, a *archive.Archive, q archive.Query) (list []string) {
	for r, err := range a.Records(t.Context(), q) {
		require.NoError(t, err)
		text := fmt.Sprint(r.Sequence, r.At, r.Kind, r.Message, r.Channel)
		for _, g := range r.Groups {
			var users []uint32
			for user := range g.All() {
				if !a.IDs().Dense() {
					user = capping.UserID(audittest.User(user))
				}
				users = append(users, capping.Dense(user))
			}
			slices.Sort(users)
			text += fmt.Sprint(" ", g.Outcome, users)
		}
		list = append(list, text)
	}
	return list
}

// TestIDsMappedOneToOneGiveTheSameAnswers writes random histories with dense ids and with images of the same users, and
// compares everything that the archive answers, also after a compaction.
func TestIDsMappedOneToOneGiveTheSameAnswers(t *testing.T) {
	t.Parallel()
	firstUser := uint32(0)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		b := newBoth(t, r)
		for _, compacted := range []bool{false, true} {
			if compacted {
				now := begun.Time().Add(1 << 40)
				one, err := archive.Compact(t.Context(), b.dense, b.denseArchive, archive.CompactConfig{Now: now})
				require.NoError(t, err)
				two, err := archive.Compact(t.Context(), b.wide, b.wideArchive, archive.CompactConfig{Now: now})
				require.NoError(t, err)
				require.Equal(t, [3]int64{int64(one.Files), int64(one.Rewritten), one.Users},
					[3]int64{int64(two.Files), int64(two.Rewritten), two.Users})
				b.reopen()
			}
			b.requireSame(t, firstUser%3)
			firstUser++
		}
	}
}

// requireSame compares the records of everybody, those of every third user by an own query, and the grants.
func (b *both) requireSame(t testing.TB, firstUser uint32) {
	require.Equal(t, records(t, b.denseArchive, archive.Query{}), records(t, b.wideArchive, archive.Query{}))
	for user := firstUser; user < 60; user += 3 {
		dense, wide := capping.UserID(user), audittest.Image(user)
		require.Equal(t, records(t, b.denseArchive, archive.Query{User: &dense}),
			records(t, b.wideArchive, archive.Query{User: &wide}))
	}
	for _, channel := range []capping.Channel{0, 1, 2} {
		one, err := b.denseArchive.Grants(t.Context(), capping.Message{ID: "m1"}, channel)
		require.NoError(t, err)
		two, err := b.wideArchive.Grants(t.Context(), capping.Message{ID: "m1"}, channel)
		require.NoError(t, err)
		require.Len(t, two, len(one))
		for i := range one {
			require.Nil(t, two[i].Users)
			require.Equal(t, one[i].Channel, two[i].Channel)
			for n, list := range two[i].Lists() {
				require.True(t, slices.IsSorted(list))
				var users []capping.UserID
				for _, image := range list {
					users = append(users, capping.UserID(audittest.User(image)))
				}
				slices.Sort(users)
				require.Equal(t, one[i].Lists()[n], users)
			}
		}
	}
}

// TestRecordsOfOtherIDsAreRefusedByName reads files of one kind or key as those of another.
func TestRecordsOfOtherIDsAreRefusedByName(t *testing.T) {
	t.Parallel()
	uuids, others := ids.New(ids.UUID, ids.Key{1}), ids.New(ids.UUID, ids.Key{2})
	for _, c := range []struct{ have, want audit.IDs }{
		{audit.IDs{}, audit.IDsOf(uuids)}, {audit.IDsOf(uuids), audit.IDs{}}, {audit.IDsOf(uuids), audit.IDsOf(others)},
		{audit.IDsOf(uuids), audittest.IDs()},
	} {
		at := openDir(t)
		w := audittest.NewWriter(at, 1)
		w.IDs = c.have
		record := send(begun, "m1", 1, 7)
		if !c.have.Dense() {
			record = audittest.OfImages(record)
		}
		rolled := w.Roll(t, audittest.Frames(record)...)
		opened := w.Open(t, 0, audittest.Frames(record)...)
		a := open(at).Of(c.want)
		want := fmt.Sprintf("the records have ids of the kind %s, and the ids of this deployment are %s", c.have,
			c.want)
		require.ElementsMatch(t, []string{"error: " + opened + ": " + want, "error: " + rolled.Key + ": " + want},
			told(t, a.Records(t.Context(), archive.Query{})))

		audittest.EraseOf(t, at, c.have, 1, begun+1, 7)
		_, err := a.Erased(t.Context())
		require.ErrorAs(t, err, new(*audit.OtherIDsError))
		_, err = archive.Compact(t.Context(), at, a, archive.CompactConfig{Now: begun.Time()})
		require.ErrorAs(t, err, new(*audit.OtherIDsError))
	}
	require.Equal(t, "uuid with the check "+uuids.Check(), audit.IDsOf(uuids).String())
	require.Equal(t, "dense", audit.IDsOf(nil).String())
}

func TestIDsOfALocationAreNamed(t *testing.T) {
	t.Parallel()
	at := openDir(t)
	found, err := archive.ReadIDs(t.Context(), at)
	require.NoError(t, err)
	require.Equal(t, audit.IDs{}, found)
	raw, err := audittest.IDs().Seal()
	require.NoError(t, err)
	require.NoError(t, at.Overwrite(t.Context(), audit.IDsKey, raw))
	found, err = archive.ReadIDs(t.Context(), at)
	require.NoError(t, err)
	require.Equal(t, audittest.IDs(), found)
	require.NoError(t, at.Overwrite(t.Context(), audit.IDsKey, bytes.Replace(raw, []byte("uint64"), []byte("uuid"), 1)))
	_, err = archive.ReadIDs(t.Context(), at)
	require.ErrorIs(t, err, audit.ErrDocument)
}

// TestExportsNameUsers writes rows whose users have texts.
func TestExportsNameUsers(t *testing.T) {
	t.Parallel()
	record := audittest.OfImages(send(begun, "m1", 1, 7, 8))
	known := audittest.Image(7)
	name := func(user capping.UserID) string {
		if user == known {
			return `seven "7"`
		}
		return archive.ImageName(user)
	}
	want := []string{`seven "7"`, fmt.Sprintf("image:%016x", uint64(audittest.Image(8)))}
	if audittest.Image(8) < known {
		slices.Reverse(want)
	}
	for _, format := range []string{archive.NDJSON, archive.Parquet} {
		var out bytes.Buffer
		w, err := archive.NewNamedWriter(format, &out, name)
		require.NoError(t, err)
		require.NoError(t, w.Add(record, "push"))
		require.NoError(t, w.Close())
		require.EqualValues(t, 2, w.Rows())
		var rows []archive.NamedRow
		if format == archive.Parquet {
			rows, err = parquet.Read[archive.NamedRow](bytes.NewReader(out.Bytes()), int64(out.Len()))
			require.NoError(t, err)
		} else {
			for line := range strings.Lines(out.String()) {
				var row archive.NamedRow
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				rows = append(rows, row)
			}
		}
		require.Len(t, rows, 2)
		require.Equal(t, want, []string{rows[0].UserID, rows[1].UserID})
		require.Equal(t, "allowed", rows[1].Outcome)
	}
	_, err := archive.NewNamedWriter("csv", new(bytes.Buffer), name)
	require.ErrorContains(t, err, `unknown export format "csv"`)
}
