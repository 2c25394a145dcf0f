package verify_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
)

// fill writes a healthy location with one of everything.
func fill(t *testing.T, at objects.Location) (a *audittest.Writer) {
	audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 9}\n")
	audittest.Policy(t, at, "c2", "version: c2\n"+head+"  default: {daily: 8}\n")
	a = audittest.NewWriter(at, 1)
	b := audittest.NewWriter(at, 2)
	blast := sent(noon, "blast", 1, 1)
	blast.Groups = []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Range(0, 5000)},
		{Outcome: audit.Denied, Limit: "daily", Users: bitmap.Of(7000, 7001, 9000, 70_000)}}
	a.Roll(t, audittest.Frames(blast, sent(noon+1, "one", 2, 42))...)
	a.Roll(t, audittest.Frames(changed(sent(noon+hour, "two", 1, 42, 43), under("c2")),
		gaveBack(noon+hour+9, audit.Released, "one", 42))...)
	b.Roll(t, audittest.Frames(sent(noon+5, "three", 0, 44))...)
	a.Open(t, 0, audittest.Frames(sent(noon+2*hour, "four", 1, 45), sent(noon+2*hour+1, "five", 1, 46))...)
	audittest.Erase(t, at, 1, noon+3*hour, 4711)
	audittest.Erase(t, at, 2, noon+4*hour, 43)
	return a
}

func checked(t *testing.T, at objects.Source) *verify.Report {
	t.Helper()
	report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy), verify.Config{Segments: worlds})
	require.NoError(t, err)
	return report
}

// all reads every record, and counts those that it is given.
func all(t *testing.T, at objects.Source) (records, errs int) {
	for r, err := range archive.New(at, config.ParsePolicy).Records(t.Context(), archive.Query{}) {
		if err != nil {
			errs++
			continue
		}
		_ = r
		records++
	}
	return records, errs
}

func listed(t *testing.T, at objects.Source) (keys []string, bodies [][]byte) {
	found, err := at.List(t.Context(), "")
	require.NoError(t, err)
	for _, o := range found {
		body, err := at.Read(t.Context(), o.Key, o.SizeBytes)
		require.NoError(t, err)
		keys, bodies = append(keys, o.Key), append(bodies, body)
	}
	return keys, bodies
}

func TestAByteThatIsAnotherOneIsFound(t *testing.T) {
	t.Parallel()
	aByteThatIsAnotherOneIsFound(t, 33)
}

// aByteThatIsAnotherOneIsFound changes so many random bytes, one after the other.
func aByteThatIsAnotherOneIsFound(t *testing.T, bytes int) {
	at := objects.NewDirectory(t.TempDir())
	fill(t, at)
	require.Empty(t, checked(t, at).Findings)
	keys, bodies := listed(t, at)
	require.Len(t, keys, 3+3+2+2+1)
	random := rand.New(rand.NewPCG(1, 2))
	for n := range bytes {
		i := n % len(keys) // each object as often
		body := slices.Clone(bodies[i])
		offset := random.IntN(len(body))
		body[offset] ^= byte(1 + random.IntN(255))
		require.NoError(t, at.Overwrite(t.Context(), keys[i], body))
		require.NotEmpty(t, checked(t, at).Findings, "%s, byte %d", keys[i], offset)
		all(t, at)
		require.NoError(t, at.Overwrite(t.Context(), keys[i], bodies[i]))
	}
	require.Empty(t, checked(t, at).Findings)
}

func TestWhatIsCutOffOrGoneIsFound(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	fill(t, at)
	keys, bodies := listed(t, at)
	for i, key := range keys {
		for _, size := range []int{0, 1, len(bodies[i]) / 2, len(bodies[i]) - 1} {
			require.NoError(t, at.Overwrite(t.Context(), key, bodies[i][:size]))
			report := checked(t, at)
			records, _ := all(t, at)
			if strings.HasPrefix(key, audit.OpenPrefix) { // its end is written as long as it is open
				require.Empty(t, report.Findings, "%s, %d bytes", key, size)
				require.Less(t, records, 7)
			} else {
				require.NotEmpty(t, report.Findings, "%s, %d bytes", key, size)
			}
		}
		require.NoError(t, at.Delete(t.Context(), key))
		report := checked(t, at)
		switch {
		// nothing says that there was one
		case strings.HasPrefix(key, audit.OpenPrefix), strings.HasPrefix(key, audit.ErasedPrefix):
			require.Empty(t, report.Findings)
		case strings.HasSuffix(key, "0000000000000001-1.json"): // as retention takes it away
			require.NotEmpty(t, report.Notes, key)
		default:
			require.NotEmpty(t, report.Findings, key)
		}
		all(t, at)
		require.NoError(t, at.Overwrite(t.Context(), key, bodies[i]))
	}
	require.Empty(t, checked(t, at).Findings)
}

func TestStrangeObjectsAreFound(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, name string, at objects.Location) {
		a := fill(t, at)
		_, err := at.Replace(t.Context(), "notes.txt", []byte("{}"), "") // leaves objects.ProbeKey in S3
		require.NoError(t, err)
		require.NoError(t, at.Delete(t.Context(), "notes.txt"))
		require.Empty(t, checked(t, at).Findings)
		whole, err := at.List(t.Context(), audit.RecordsPrefix)
		require.NoError(t, err)
		copied, err := at.Read(t.Context(), whole[0].Key, whole[0].SizeBytes)
		require.NoError(t, err)
		for key, kind := range map[string]string{
			"notes.txt": verify.Stranger, "records/x": verify.Stranger, "index/2026-11-18/x.json": verify.Stranger,
			"index/2026-11-18/" + a.Instance + "-9.json":             verify.Damage,
			audit.RecordsKey("2026-11-18", strings.Repeat("ab", 32)): "",
		} {
			body := []byte("{}")
			if kind == "" {
				body = copied
			}
			require.NoError(t, at.Overwrite(t.Context(), key, body))
			report := checked(t, at)
			if kind == "" { // a copy of a file of the index, under a name that is not its own
				require.Len(t, report.Notes, 1)
			} else {
				require.Len(t, report.Findings, 1, key)
				require.Equal(t, kind, report.Findings[0].Kind, key)
			}
			require.NoError(t, at.Delete(t.Context(), key))
		}
		stranger := audittest.NewWriter(objects.NewDirectory(t.TempDir()), 3)
		entry := stranger.Roll(t, audittest.Frames(sent(noon, "x", 1, 1))...)
		_ = entry
	})
}

func TestLossesAndHolesAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := objects.NewDirectory(dir)
	audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 9}\n")
	a := audittest.NewWriter(at, 1)
	a.Roll(t, audittest.Frames(sent(noon, "a", 1, 1))...)
	a.Roll(t, audit.Frame{Record: sent(noon+1, "b", 1, 2)},
		audit.Frame{Gap: &audit.Gap{Lost: 17, From: noon + 2, To: noon + 3}})
	a.Roll(t, audittest.Frames(sent(noon+4, "c", 1, 3))...)
	report := checked(t, at)
	require.Equal(t, map[string]int{verify.Loss: 1}, report.Found)
	require.Equal(t, "instance 0000000000000001 lost 17 records of calls from 2026-11-18T12:00:00.002Z to "+
		"2026-11-18T12:00:00.003Z", report.Findings[0].Text)
	require.NoError(t, at.Delete(t.Context(), audit.IndexKey("2026-11-18", a.Instance, 2)))
	report = checked(t, at)
	require.Equal(t, map[string]int{verify.Missing: 1, verify.Gap: 1, verify.Unindexed: 1}, withUnindexed(report))
	files, err := filepath.Glob(filepath.Join(dir, "records/*/*"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	require.EqualValues(t, 18, report.Findings[0].Records)
}

func withUnindexed(r *verify.Report) map[string]int { return r.Found }

// A bitmap whose bytes are damaged and whose checksums are right is damage all the same.
func TestAMalformedBitmapIsDamage(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	a := fill(t, at)
	many := sent(noon, "many", 1)
	many.Took = time.Second
	users := bitmap.Range(0, 20_000)
	broken := slices.Clone(users.Bytes())
	many.Groups = []audit.Group{{Outcome: audit.Allowed, Users: users}}
	copy(users.Bytes(), broken)
	raw := users.Bytes()
	raw[len(raw)-1] ^= 0xff // beyond the container
	a.Roll(t, audittest.Frames(many)...)
	report := checked(t, at)
	require.Positive(t, report.Found[verify.Damage])
	_, errs := all(t, at)
	require.Equal(t, 1, errs)
	_ = capping.Never
}
