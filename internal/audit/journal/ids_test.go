package journal_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	userids "capper/internal/ids"
	"capper/internal/objects"
)

// TestJournalsOfImagesRecordTheSameGroups gives random decisions, releases and changes to a journal of dense ids and to
// one of images, mapped one to one.
func TestJournalsOfImagesRecordTheSameGroups(t *testing.T) {
	t.Parallel()
	dense := open(t, journal.Config{To: t.TempDir()})
	wide := open(t, journal.Config{To: t.TempDir(), IDs: audittest.IDs()})
	back := map[capping.UserID]capping.UserID{}
	images := func(users []capping.UserID) (list []capping.UserID) {
		for _, user := range users {
			image := audittest.Image(uint32(user))
			back[image] = user
			list = append(list, image)
		}
		return list
	}
	random := rand.New(rand.NewPCG(5, 6))
	policy := &capping.Policy{Version: "c1", Suppress: []capping.Suppression{{Set: "opted-out"}, {Set: "minors"}}}
	for n := range 60 {
		var users []capping.UserID
		for range 1 + random.IntN(1000) {
			users = append(users, capping.UserID(random.Uint32()))
		}
		slices.Sort(users)
		if users = slices.Compact(users); random.IntN(2) == 0 {
			random.Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
		}
		at := capping.InstantOf(time.Now()) + capping.Instant(n)
		results := make([]capping.Released, len(users))
		d := &capping.Decisions{Users: users, Verdicts: make([]capping.Verdict, len(users)),
			Codes: make([]uint8, len(users)), Generation: "g1", Policy: policy}
		only := random.IntN(4)
		for i := range users {
			results[i] = capping.Released(random.IntN(3))
			v := &d.Verdicts[i]
			if v.Outcome = capping.Outcome(random.IntN(4)); only == 0 {
				v.Outcome = capping.Allowed
			}
			if v.Outcome == capping.Denied {
				v.By, v.Rule = capping.BySuppression+capping.Reason(random.IntN(3)), uint8(random.IntN(2))
			}
		}
		other := *d
		other.Users = images(users)
		dense.Filter(&audit.Record{At: at, Client: "crm"}, d)
		wide.Filter(&audit.Record{At: at, Client: "crm"}, &other)
		dense.Release(&audit.Record{At: at, Client: "release"}, users, results)
		wide.Release(&audit.Record{At: at, Client: "release"}, images(users), results)
		change := func() *audit.Record {
			return &audit.Record{At: at, Client: "change", Change: &audit.SetChange{Set: "opted-out", At: at}}
		}
		dense.Change(change(), slices.Sorted(slices.Values(users)), nil, nil)
		wide.Change(change(), slices.Sorted(slices.Values(images(users))), nil, nil)
	}
	require.NoError(t, dense.Flush(t.Context()))
	require.NoError(t, wide.Flush(t.Context()))
	read := func(j *journal.Journal) map[string][]audit.Group {
		found := map[string][]audit.Group{}
		for r, err := range archive.New(j.Source(), nil).Of(j.IDs).Records(t.Context(), archive.Query{}) {
			require.NoError(t, err)
			for _, g := range r.Groups {
				users := g.AppendUsers(nil)
				if !j.IDs.Dense() {
					for i := range users {
						users[i] = back[users[i]]
					}
					slices.Sort(users)
				}
				g.Users, g.Images = nil, users
				found[r.Client+r.At.Time().String()] = append(found[r.Client+r.At.Time().String()], g)
			}
		}
		return found
	}
	want := read(dense)
	require.Len(t, want, 180)
	require.Equal(t, want, read(wide))
}

// tree returns the contents of all files in a directory, by path.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		files[path] = string(raw)
		return err
	}))
	return files
}

// TestTwoIDsOfOneImageAreOneUser records a user once whose image is twice in a call.
func TestTwoIDsOfOneImageAreOneUser(t *testing.T) {
	t.Parallel()
	j := open(t, journal.Config{To: t.TempDir(), IDs: audittest.IDs()})
	j.Filter(call("m", 1<<40, 7, 1<<40))
	require.NoError(t, j.Flush(t.Context()))
	for r, err := range archive.New(j.Source(), nil).Of(j.IDs).Records(t.Context(), archive.Query{}) {
		require.NoError(t, err)
		require.Equal(t, []capping.UserID{7, 1 << 40}, r.Groups[0].Images)
	}
}

// TestALocationHasIDsOfOneKindAndKey opens journals at locations of other ids. They are refused, and write nothing.
func TestALocationHasIDsOfOneKindAndKey(t *testing.T) {
	t.Parallel()
	uuids := audit.IDsOf(userids.New(userids.UUID, userids.Key{1}))
	others := audit.IDsOf(userids.New(userids.UUID, userids.Key{2}))
	for _, c := range []struct{ first, second audit.IDs }{
		{audit.IDs{}, uuids}, {uuids, audit.IDs{}}, {uuids, others}, {uuids, audittest.IDs()},
	} {
		dir := t.TempDir()
		j := open(t, journal.Config{To: dir, IDs: c.first})
		j.SetPolicy(t.Context(), "c1", []byte("version: c1\n"))
		j.Filter(call("m", 1, 2, 3))
		require.NoError(t, j.Erase(t.Context(), 2))
		require.NoError(t, j.Close(t.Context()))
		before := tree(t, dir)
		_, err := journal.Open(t.Context(), journal.Config{To: dir, IDs: c.second})
		require.EqualError(t, err, "audit.to: "+dir+": the records have ids of the kind "+c.first.String()+
			", and the ids of this deployment are "+c.second.String())
		require.Equal(t, before, tree(t, dir))
		open(t, journal.Config{To: dir, IDs: c.first})
	}
}

// TestFilesOfOtherIDsStayInTheSpool opens a journal beside the rooms of dead services with other ids, which hold a file
// and an erasure. The journal uploads neither, names them, and uploads its own.
func TestFilesOfOtherIDsStayInTheSpool(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	_, file := audit.NewEncoder(nil, audit.Header{Instance: "00000000000000aa", Number: 1, Begun: 5, First: 1})
	erasure, err := audit.Seal(audit.NewErasure(audit.IDs{}, []capping.UserID{7}, time.Now()))
	require.NoError(t, err)
	for key, raw := range map[string][]byte{"00000000000000aa/lock": nil, "00000000000000aa/1.audit": file,
		"00000000000000bb/lock": nil, "00000000000000bb/1.erasure": erasure} {
		require.NoError(t, place.Overwrite(t.Context(), audit.OpenPrefix+key, raw))
	}
	j := open(t, journal.Config{To: dir, IDs: audittest.IDs()})
	const other = ": the records have ids of the kind dense, and the ids of this deployment are uint64 with the check "
	for _, name := range []string{"1.audit", "1.erasure"} {
		require.Eventually(t, func() bool {
			return strings.Contains(j.Status().Error, name+other+audittest.IDs().Check)
		},
			10*time.Second, 10*time.Millisecond)
	}
	j.Filter(call("m", 1<<40))
	require.NoError(t, j.Close(t.Context()))
	list, err := place.List(t.Context(), audit.ErasedPrefix)
	require.NoError(t, err)
	require.Empty(t, list)
	list, err = place.List(t.Context(), audit.RecordsPrefix)
	require.NoError(t, err)
	require.Len(t, list, 1)
}
