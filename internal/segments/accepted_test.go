package segments_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// accepted returns an acceptance for a set that lost some of its users.
func accepted(at time.Time) segments.Accepted {
	return segments.Accepted{
		Set:        "opted-out",
		FromSHA256: strings.Repeat("a1", 32), ToSHA256: strings.Repeat("b2", 32),
		Before: 1000, Removed: 570, Change: "-57%", Reason: "the <import> of May was wrong", At: at.UTC(),
	}
}

func withSets(t testing.TB) *segments.Manifest {
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "",
		[]segments.Segment{segments.Describe("vip", bitmap.Of(1))}, describe("opted-out", bitmap.Of(1, 2)))
	require.NoError(t, err)
	return m
}

func TestAcceptancesHaveFormatThreeAndANameOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := withSets(t)
	vanished := accepted(segmentstest.Epoch)
	vanished.Set, vanished.ToSHA256, vanished.Removed = "tz/Asia/Singapore", "", vanished.Before
	ofSegment := accepted(segmentstest.Epoch)
	ofSegment.Set, ofSegment.Segment = "", "vip"
	with, err := m.WithAccepted([]segments.Accepted{accepted(segmentstest.Epoch), vanished, ofSegment})
	require.NoError(t, err)
	require.Equal(t, segments.AcceptedFormatVersion, with.FormatVersion)
	require.NotEqual(t, m.Generation, with.Generation)
	require.Empty(t, m.Accepted)
	back, err := segments.ParseManifest(with.Generation, with.Encode())
	require.NoError(t, err)
	require.Equal(t, with, back)

	without, err := with.WithAccepted(nil)
	require.NoError(t, err)
	require.Equal(t, m, without, "a manifest without acceptances is as it was before there were any")
	require.NotContains(t, string(without.Encode()), "accepted")
}

// TestOlderProgramsRefuseAManifestWithAcceptances checks that programs that do not know acceptances
// reject such a manifest, because they would not repeat the acceptances.
func TestOlderProgramsRefuseAManifestWithAcceptances(t *testing.T) {
	t.Parallel()
	with, err := withSets(t).WithAccepted([]segments.Accepted{accepted(segmentstest.Epoch)})
	require.NoError(t, err)
	err = segments.ParseAsOf(segments.SetsFormatVersion, with.Encode())
	require.EqualError(t, err, "format_version 3 is too new: this program reads up to 2, and a newer version of "+
		"capper wrote the document")
	require.NoError(t, segments.ParseAsOf(segments.SetsFormatVersion, withSets(t).Encode()))
	require.Equal(t, 1, segments.PointerTo(with).FormatVersion)
}

func TestAcceptancesThatAreRefused(t *testing.T) {
	t.Parallel()
	for want, spoil := range map[string]func(*segments.Accepted){
		`accepted[0]: set name "a b"`:      func(a *segments.Accepted) { a.Set = "a b" },
		`accepted[0]: set name ""`:         func(a *segments.Accepted) { a.Set = "" },
		"name either a set or a segment":   func(a *segments.Accepted) { a.Segment = "vip" },
		`segment name "default"`:           func(a *segments.Accepted) { a.Set, a.Segment = "", "default" },
		`from_sha256 "": must be`:          func(a *segments.Accepted) { a.FromSHA256 = "" },
		`to_sha256 "x": must be empty`:     func(a *segments.Accepted) { a.ToSHA256 = "x" },
		"must differ from the value of":    func(a *segments.Accepted) { a.ToSHA256 = a.FromSHA256 },
		"'removed' must be at most":        func(a *segments.Accepted) { a.Removed = 1001 },
		"because the set no longer exists": func(a *segments.Accepted) { a.ToSHA256 = "" },
		"valid UTF-8, got 0":               func(a *segments.Accepted) { a.Change = "" },
		"change must be 1 to 64":           func(a *segments.Accepted) { a.Change = strings.Repeat("x", 65) },
		"reason must be 1 to":              func(a *segments.Accepted) { a.Reason = "" },
		"valid UTF-8, got 1025":            func(a *segments.Accepted) { a.Reason = strings.Repeat("x", 1025) },
		"valid UTF-8, got 1":               func(a *segments.Accepted) { a.Reason = "\xff" },
		"accepted[0]: at: must be set":     func(a *segments.Accepted) { a.At = time.Time{} },
	} {
		a := accepted(segmentstest.Epoch)
		spoil(&a)
		with, err := withSets(t).WithAccepted([]segments.Accepted{a})
		require.ErrorContains(t, err, want)
		_, err = segments.ParseManifest(with.Generation, with.Encode())
		require.Error(t, err, want)
	}
	_, err := withSets(t).WithAccepted(make([]segments.Accepted, segments.MaxAccepted+1))
	require.EqualError(t, err, "accepted: must be a list of at most 64 accepted changes, got 65")
}

func TestLaterManifestsCarryTheNewestAcceptances(t *testing.T) {
	t.Parallel()
	var list []segments.Accepted
	for i := range segments.MaxAccepted {
		list = append(list, accepted(segmentstest.Epoch.Add(time.Duration(i)*time.Hour)))
	}
	m, err := withSets(t).WithAccepted(list)
	require.NoError(t, err)
	last := list[len(list)-1].At
	require.Equal(t, list, m.CarriedAccepted(last, 0))
	require.Equal(t, list[3:], m.CarriedAccepted(last, 3))
	require.Empty(t, m.CarriedAccepted(last, segments.MaxAccepted+1))
	require.Equal(t, list[1:], m.CarriedAccepted(list[1].At.Add(segments.MaxAcceptedAge), 0))
	require.Empty(t, m.CarriedAccepted(last.Add(segments.MaxAcceptedAge+1), 0))
}
