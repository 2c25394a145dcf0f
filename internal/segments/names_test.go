package segments_test

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

func TestNamesOfSets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"opted-out", "country/sg", "tz/Asia/Singapore", "tz/Etc/GMT+8", "tz/UTC",
		"tz/America/Argentina/Buenos_Aires",
		"a", "A.b_c-d/e/f", "tzx/Mars", "2027-q1", strings.Repeat("x", segments.MaxSetName)} {
		require.NoError(t, segments.CheckSetName(name), name)
	}
	for name, want := range map[string]string{
		"":                       "must be 1 to 128",
		"all":                    "reserved",
		"default":                "reserved",
		"tz/Mars/Olympus":        `"Mars/Olympus": must be a time zone of the IANA database`,
		"tz/":                    "must be 1 to 128",
		"tz":                     "",
		"tz/Local":               "must be a time zone",
		"tz/localtime":           "must be a time zone",
		"tz/posixrules":          "must be a time zone",
		"tz/right/Asia/Tokyo":    "must be a time zone",
		"tz/posix/Asia/Tokyo":    "must be a time zone",
		"tz/asia/singapore":      "must be a time zone",
		"tz/Asia":                "must be a time zone",
		"tz/Factory":             "must be a time zone",
		"tz/../UTC":              "must not be empty",
		"../x":                   "must be 1 to 128",
		"a//b":                   "must be 1 to 128",
		"a/../o":                 "must not be empty, '.' or '..'",
		"a/./o":                  "must not be empty, '.' or '..'",
		"a/..":                   "must not be empty, '.' or '..'",
		"/a":                     "must be 1 to 128",
		"a/":                     "must be 1 to 128",
		"-a":                     "must be 1 to 128",
		"a b":                    "must be 1 to 128",
		"a&b":                    "must be 1 to 128",
		"a\nb":                   "must be 1 to 128",
		"größe":                  "must be 1 to 128",
		strings.Repeat("x", 129): "must be 1 to 128",
	} {
		if want == "" {
			require.NoError(t, segments.CheckSetName(name), name)
			continue
		}
		require.ErrorContains(t, segments.CheckSetName(name), want, name)
	}
}

// TestZonesAreThoseOfTheDatabase checks that the accepted zones are those of the database that Go
// contains.
func TestZonesAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	database, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer database.Close()
	for _, file := range database.File {
		if strings.HasSuffix(file.Name, "/") || file.Name == "Factory" {
			continue
		}
		zone, err := segments.Zone(segments.ZonePrefix + file.Name)
		require.NoError(t, err)
		require.Equal(t, file.Name, zone.String())
	}
}

func describe(name string, b *bitmap.Bitmap) segments.Set {
	return segments.Set{Segment: segments.Describe(name, b)}
}

func TestAManifestHasFormatTwoExactlyWhenItHasSets(t *testing.T) {
	t.Parallel()
	list := []segments.Segment{segments.Describe("vip", bitmap.Of(1))}
	without, err := segments.NewManifest(segmentstest.Epoch, "test", "", list)
	require.NoError(t, err)
	require.Equal(t, 1, without.FormatVersion)
	require.NotContains(t, string(without.Encode()), "sets")
	with, err := segments.NewManifest(segmentstest.Epoch, "test", "", list, describe("opted-out", bitmap.Of(1, 2)))
	require.NoError(t, err)
	require.Equal(t, 2, with.FormatVersion)
	back, err := segments.ParseManifest(with.Generation, with.Encode())
	require.NoError(t, err)
	require.Equal(t, with, back)
	for _, m := range []segments.Manifest{*with, *without} {
		m.FormatVersion = 3 - m.FormatVersion
		m.Generation = segments.NameOf(&m)
		_, err := segments.ParseManifest(m.Generation, m.Encode())
		require.ErrorContains(t, err, "format_version")
	}
	empty := strings.Replace(string(without.Encode()), "\n}\n", ",\n  \"sets\": []\n}\n", 1)
	_, err = segments.ParseManifest(without.Generation, []byte(empty))
	require.Error(t, err)
	require.Equal(t, 1, segments.PointerTo(with).FormatVersion, "older programs say what is wrong with the "+
		"manifest, not with current.json")
}

func TestHowManySetsThereCanBe(t *testing.T) {
	t.Parallel()
	list := []segments.Segment{segments.Describe("vip", bitmap.Of(1))}
	entry := describe("", bitmap.Of(0, 1<<32-1))
	entry.OnlyGrows, entry.MaxLoss = true, 12.345678901234567
	entry.AsOf = segmentstest.Epoch.Add(-time.Millisecond)
	entry.AmendedAsOf = entry.AsOf
	var sets []segments.Set
	for i := range segments.MaxSets {
		digits := []byte("0000")
		for k, n := 3, i; k >= 0; k, n = k-1, n/10 {
			digits[k] += byte(n % 10)
		}
		entry.Name = strings.Repeat("x", segments.MaxSetName-4) + string(digits)
		sets = append(sets, entry)
	}
	m, err := segments.NewManifest(segmentstest.Epoch, "test", strings.Repeat("why ", 1000), list, sets...)
	require.NoError(t, err)
	require.Less(t, len(m.Encode()), segments.MaxManifestBytes)
	_, err = segments.ParseManifest(m.Generation, m.Encode())
	require.NoError(t, err)
	entry.Name = "one-more"
	_, err = segments.NewManifest(segmentstest.Epoch, "test", "", list, append(sets, entry)...)
	require.ErrorContains(t, err, "4097 sets, but must have at most 4096")
	for want, name := range map[string]string{`name "vip" is given twice`: "vip", `name "a" is given twice`: "a"} {
		_, err = segments.NewManifest(segmentstest.Epoch, "test", "", list, describe("a", bitmap.Of(1)),
			describe(name, bitmap.Of(2)))
		require.ErrorContains(t, err, want)
	}
}

// FuzzManifest checks that every accepted manifest encodes to exactly the same bytes, with valid names
// in valid order.
func FuzzManifest(f *testing.F) {
	list := []segments.Segment{segments.Describe("vip", bitmap.Of(1)), segments.Describe("new", bitmap.Of())}
	for _, sets := range [][]segments.Set{nil, {describe("opted-out", bitmap.Of(1, 2))},
		{describe("tz/Asia/Singapore", bitmap.Of(3)), describe("country/sg", bitmap.Of())},
		{timedSet("opted-out", segmentstest.Epoch.Add(-time.Millisecond), segmentstest.Epoch)}} {
		m, err := segments.NewManifest(segmentstest.Epoch, "test", "because", list, sets...)
		require.NoError(f, err)
		f.Add(m.Encode())
		m, err = m.WithAccepted([]segments.Accepted{accepted(segmentstest.Epoch)})
		require.NoError(f, err)
		f.Add(m.Encode())
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, raw, err := segments.ParseAnyName(raw)
		if err != nil {
			return
		}
		require.Equal(t, string(raw), string(m.Encode()))
		timed := slices.ContainsFunc(m.Sets,
			func(s segments.Set) bool { return !s.AsOf.IsZero() || !s.AmendedAsOf.IsZero() })
		require.Equal(t, timed, m.FormatVersion == segments.AsOfFormatVersion)
		require.Equal(t, !timed && len(m.Accepted) > 0, m.FormatVersion == segments.AcceptedFormatVersion)
		require.Equal(t, !timed && len(m.Accepted) == 0 && len(m.Sets) > 0,
			m.FormatVersion == segments.SetsFormatVersion)
		for _, s := range m.Sets {
			require.NoError(t, segments.CheckSetName(s.Name))
			require.Equal(t, segments.BitmapKey(s.SHA256), s.Key, "a file is called by what is in it, and never "+
				"by a name")
		}
	})
}
