package verify_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/ids"
	"capper/internal/objects"
)

// fillImages is fill where ids are not dense.
func fillImages(t *testing.T, at objects.Location) {
	audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 9}\n")
	nameIDs(t, at)
	w := audittest.NewWriter(at, 1)
	w.IDs = audittest.IDs()
	blast := sent(noon, "blast", 1, 1)
	blast.Groups = nil
	for i, outcome := range []audit.Outcome{audit.Allowed, audit.Unavailable} {
		var users []uint32
		for user := range uint32(60) {
			users = append(users, user*2+uint32(i))
		}
		blast.Groups = append(blast.Groups, sent(noon, "", 1, users...).Groups[0])
		blast.Groups[i].Outcome = outcome
	}
	w.Roll(t, audittest.FramesOfImages(audittest.Frames(blast, sent(noon+1, "one", 2, 42)))...)
	w.Open(t, 0, audittest.FramesOfImages(audittest.Frames(sent(noon+hour, "two", 1, 43)))...)
	audittest.EraseOf(t, at, w.IDs, 1, noon+2*hour, audittest.Image(4))
}

func checkedImages(t *testing.T, at objects.Source) *verify.Report {
	t.Helper()
	report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy).Of(audittest.IDs()),
		verify.Config{Segments: imageWorlds})
	require.NoError(t, err)
	return report
}

// Bytes of each object of an audit of images are changed and each object is cut, one after the other, and verify finds
// every fault. TestFlippedBytes of package audit changes each byte of a file.
func TestNoByteOfAnAuditOfImagesIsBelieved(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	fillImages(t, at)
	healthy := checkedImages(t, at)
	require.Empty(t, healthy.Findings)
	require.Equal(t, [3]int64{3, 61, 1}, [3]int64{healthy.Records, healthy.Sends, int64(healthy.Erased)})
	keys, bodies := listed(t, at)
	require.Contains(t, keys, audit.IDsKey)
	for i, key := range keys {
		for offset := i; offset < len(bodies[i]); offset += len(bodies[i])/15 + 1 {
			body := slices.Clone(bodies[i])
			body[offset] ^= byte(1 << (offset % 8))
			require.NoError(t, at.Overwrite(t.Context(), key, body))
			require.NotEmpty(t, checkedImages(t, at).Findings, "%s, byte %d", key, offset)
		}
		for _, size := range []int{0, 1, len(bodies[i]) / 2, len(bodies[i]) - 1} {
			require.NoError(t, at.Overwrite(t.Context(), key, bodies[i][:size]))
			found := checkedImages(t, at).Findings
			if open := strings.HasSuffix(key, "/2"+audit.FileExtension); !open {
				require.NotEmpty(t, found, "%s, %d bytes", key, size)
			}
		}
		require.NoError(t, at.Overwrite(t.Context(), key, bodies[i]))
	}
	require.Empty(t, checkedImages(t, at).Findings)
	require.NoError(t, at.Delete(t.Context(), audit.IDsKey))
	require.Equal(t, map[string]int{verify.Damage: 1}, checkedImages(t, at).Found)
}

// Files, erasures and the document of other ids than those of the audit are findings.
func TestOtherIDsInAnAuditAreFound(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	fillImages(t, at)
	other := audit.IDsOf(ids.New(ids.Uint64, ids.Key{2}))
	dense, foreign := audittest.NewWriter(at, 2), audittest.NewWriter(at, 3)
	foreign.IDs = other
	dense.Roll(t, audittest.Frames(sent(noon, "m", 1, 7))...)
	foreign.Roll(t, audittest.FramesOfImages(audittest.Frames(sent(noon, "m", 1, 7)))...)
	audittest.Erase(t, at, 2, noon+3*hour, 7)
	raw, err := other.Seal()
	require.NoError(t, err)
	require.NoError(t, at.Overwrite(t.Context(), audit.IDsKey, raw))
	report := checkedImages(t, at)
	// Two files, the document, and the erasure twice: its users are unknown, so that no send is judged.
	require.Equal(t, map[string]int{verify.Damage: 5}, report.Found, "%+v", report.Findings)
	for _, f := range report.Findings {
		require.Contains(t, f.Text, "and the ids of this deployment are uint64 with the check "+audittest.IDs().Check)
	}
}

// The users of findings are named, in JSON by a text.
func TestFindingsNameUsers(t *testing.T) {
	t.Parallel()
	daily := map[string]string{"c1": "  default: {daily: 1}\n"}
	over := []*audit.Record{sent(noon, "a", 1, 7), sent(noon+hour, "b", 1, 7)}
	raw, err := json.Marshal(check(t, daily, verify.Config{}, over...).Findings[0])
	require.NoError(t, err)
	require.Contains(t, string(raw), `"user_id":7,`)
	var dense, named verify.Finding
	require.NoError(t, json.Unmarshal(raw, &dense))
	require.Equal(t, &verify.User{ID: 7}, dense.User)

	at := objects.NewDirectory(t.TempDir())
	audittest.Policy(t, at, "c1", "version: c1\n"+head+daily["c1"])
	nameIDs(t, at)
	w := audittest.NewWriter(at, 1)
	w.IDs = audittest.IDs()
	w.Roll(t, audittest.FramesOfImages(audittest.Frames(over...))...)
	report := checkedImages(t, at)
	require.Len(t, report.Findings, 1)
	name := archive.ImageName(audittest.Image(7))
	require.Contains(t, report.Findings[0].Text, "user "+name+" received more than 1 sends")
	raw, err = json.Marshal(report.Findings[0])
	require.NoError(t, err)
	require.Contains(t, string(raw), `"user_id":"`+name+`",`)
	require.NoError(t, json.Unmarshal(raw, &named))
	require.Equal(t, &verify.User{Name: name}, named.User)
}

// A store is compared with an audit of images: a send that it lacks, one that was given back meanwhile, and one of an
// erased user.
func TestTheStoreIsComparedByImages(t *testing.T) {
	t.Parallel()
	at, w, store := compared(t)
	nameIDs(t, at)
	w.IDs, store.images = audittest.IDs(), true
	roll := func(records ...*audit.Record) {
		w.Roll(t, audittest.FramesOfImages(audittest.Frames(records...))...)
	}
	roll(sent(noon, "m", 1, 42, 43, 44, 45), sent(noon+1, "n", 1, 42))
	audittest.EraseOf(t, at, w.IDs, 1, noon+hour, audittest.Image(45))
	store.lacks[sendName("m", 44)], store.lacks[sendName("m", 45)] = true, true
	store.settled = func() { roll(gaveBack(noon+hour, audit.Released, "m", 44)) }
	report, missing := store.compare(t, at)
	require.Equal(t, []string{"m 42"}, missing)
	require.Equal(t, map[string]int{verify.NotInStore: 1}, report.Found)
	require.Equal(t, "42", report.Findings[0].User.String())
	require.EqualValues(t, 4, report.Store.Asked)
	require.EqualValues(t, 1, report.Store.Changed)
	store.silent = map[capping.UserID]bool{42: true}
	report, missing = store.compare(t, at)
	require.Empty(t, missing)
	require.EqualValues(t, 2, report.Store.Unanswered)
}
