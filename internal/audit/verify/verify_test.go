package verify_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
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
	"capper/internal/objects/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Main(m.Run)) }

const (
	second = capping.Instant(1000)
	hour   = 3600 * second
	day    = 24 * hour
)

// noon is a Wednesday's, in UTC.
var noon = capping.InstantOf(time.Date(2026, 11, 18, 12, 0, 0, 0, time.UTC))

// world is a generation: users below 100 are new, those from 1000 on live in Singapore.
type world struct {
	images bool // the users are images; their numbers are the dense ids from which these came
}

func (w world) Numbers(users []capping.UserID, numbers []uint32) {
	for i, user := range users {
		if numbers[i] = uint32(user); w.images {
			numbers[i] = audittest.User(user)
		}
	}
}

func (world) Generation() string             { return "g1" }
func (world) Names() []string                { return []string{"new"} }
func (world) Set(string) (capping.Set, bool) { return nil, false }
func (world) Lookup(numbers []uint32, codes []uint8) {
	for i, user := range numbers {
		if codes[i] = 0; user < 100 {
			codes[i] = 1
		}
	}
}

func (world) Zones() []*time.Location {
	place, err := time.LoadLocation("Asia/Singapore")
	if err != nil {
		panic(err)
	}
	return []*time.Location{place}
}

func (world) LookupZones(numbers []uint32, zones []uint16) {
	for i, user := range numbers {
		if zones[i] = 0; user >= 1000 {
			zones[i] = 1
		}
	}
}

func worlds(_ context.Context, generation string) (capping.Segments, error) {
	if generation != "g1" {
		return nil, errors.New("not found")
	}
	return world{}, nil
}

// imageWorlds is worlds where ids are not dense.
func imageWorlds(ctx context.Context, generation string) (capping.Segments, error) {
	_, err := worlds(ctx, generation)
	return world{images: true}, err
}

// named is the dense id from which an image came, as a text.
func named(image capping.UserID) string { return strconv.FormatUint(uint64(audittest.User(image)), 10) }

// sent is a filter call that allowed users, under configuration c1.
func sent(at capping.Instant, message string, channel capping.Channel, users ...uint32) *audit.Record {
	return &audit.Record{Kind: audit.Filter, At: at, Took: 2 * time.Millisecond, Message: capping.Message{ID: message},
		Channel: channel, Client: "crm",
		Generation: "g1", Config: "c1", Groups: []audit.Group{{Outcome: audit.Allowed, Users: bitmap.Of(users...)}}}
}

func changed(r *audit.Record, change func(*audit.Record)) *audit.Record {
	change(r)
	return r
}

func gaveBack(at capping.Instant, outcome audit.Outcome, message string, users ...uint32) *audit.Record {
	return changed(sent(at, message, 0, users...), func(r *audit.Record) {
		r.Kind, r.Groups[0].Outcome = audit.Release,
			outcome
	})
}

func exempt(r *audit.Record) { r.Exempt = true }

func under(config string) func(*audit.Record) {
	return func(r *audit.Record) { r.Config = config }
}

const head = "channels: {push: 1, email: 2}\nlimits:\n"

// check verifies records of one instance under policies by version. The findings are the same if the ids are not
// dense.
func check(t *testing.T, policies map[string]string, c verify.Config, records ...*audit.Record) *verify.Report {
	t.Helper()
	var reports [2]*verify.Report
	for i := range reports {
		at := objects.NewDirectory(t.TempDir())
		for version, limits := range policies {
			audittest.Policy(t, at, version, "version: "+version+"\n"+head+limits)
		}
		w, frames, from := audittest.NewWriter(at, 1), audittest.Frames(records...), archive.New(at, config.ParsePolicy)
		c.Segments = worlds
		if i == 1 {
			w.IDs, frames, c.Segments, c.Name = audittest.IDs(), audittest.FramesOfImages(frames), imageWorlds, named
			nameIDs(t, at)
			from.Of(w.IDs)
		}
		w.Roll(t, frames...)
		var err error
		reports[i], err = verify.Check(t.Context(), from, c)
		require.NoError(t, err)
	}
	require.ElementsMatch(t, overs(reports[0]), overs(reports[1]))
	require.Equal(t, *counted(reports[0]), *counted(reports[1]))
	return reports[0]
}

// counted is a report without its findings, and without the size of files, which depends on the ids.
func counted(r *verify.Report) *verify.Report {
	return &verify.Report{Files: r.Files, Open: r.Open, Records: r.Records, Sends: r.Sends, Unjudged: r.Unjudged,
		Erased: r.Erased, Accepted: r.Accepted, Found: r.Found, Notes: r.Notes}
}

// nameIDs writes the document that names the ids of a location.
func nameIDs(t testing.TB, at objects.Location) {
	raw, err := audittest.IDs().Seal()
	require.NoError(t, err)
	require.NoError(t, at.Overwrite(t.Context(), audit.IDsKey, raw))
}

// overs are the over-sends of a report.
func overs(r *verify.Report) (list []string) {
	for _, f := range r.Findings {
		if f.Kind != verify.OverSend {
			list = append(list, f.Kind+": "+f.Text)
			continue
		}
		list = append(list, fmt.Sprintf("%s %s %s", f.User, f.Limit, f.Message))
	}
	return list
}

func TestOverSendsAreFoundAndNothingElse(t *testing.T) {
	t.Parallel()
	daily := map[string]string{"c1": "  default: {daily: 2}\n"}
	calendar := map[string]string{"c1": "  default: [{name: today, max: 1, calendar: day}]\n"}
	own := map[string]string{"c1": "  default: [{name: today, max: 1, calendar: day, timezone: user}]\n"}
	push := map[string]string{"c1": "  default: [{name: push, max: 1, window: 1h, channels: [push]}]\n"}
	new := map[string]string{"c1": "  default: {daily: 3}\n  segments: {new: {daily: 1}}\n"}
	late := noon + 12*hour // midnight
	for name, c := range map[string]struct {
		policies map[string]string
		records  []*audit.Record
		want     []string
	}{
		"rolling: as many as there may be": {daily, []*audit.Record{sent(noon, "a", 1, 7, 8),
			sent(noon+hour, "b", 2, 7), sent(noon+day+3, "c", 1, 7)}, nil},
		"rolling: one too many": {daily, []*audit.Record{sent(noon, "a", 1, 7, 8), sent(noon+hour, "b", 2, 7),
			sent(noon+2*hour, "c", 0, 7, 8)},
			[]string{"7 daily c"}},
		"rolling: within the window whatever the instants were": {daily, []*audit.Record{sent(noon, "a", 1, 7),
			sent(noon+hour, "b", 2, 7), sent(noon+day-4, "c", 0, 7)},
			[]string{"7 daily c"}},
		"rolling: not certain": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+hour, "b", 2, 7),
			sent(noon+day-3, "c", 0, 7)}, nil},
		"the instants of two calls at once are not needed": {daily, []*audit.Record{sent(noon, "a", 1, 7),
			sent(noon+1, "b", 1, 7), sent(noon+1, "c", 1, 7)},
			[]string{"7 daily a", "7 daily b", "7 daily c"}},
		"of two calls at once one did not obey": {daily, []*audit.Record{sent(noon, "a", 1, 7),
			sent(noon+10, "b", 1, 7), changed(sent(noon+11, "c", 1, 7), exempt)}, nil},
		"exempt sends count": {daily, []*audit.Record{changed(sent(noon, "a", 1, 7), exempt),
			changed(sent(noon+10, "b", 1, 7), exempt), sent(noon+20, "c", 1, 7)}, []string{"7 daily c"}},
		"exempt sends are allowed": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			changed(sent(noon+20, "c", 1, 7), exempt)}, nil},
		"what was given back does not count": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			gaveBack(noon+20, audit.Released, "a", 7), sent(noon+30, "c", 1, 7)}, nil},
		"what was given back too late counts": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			sent(noon+30, "c", 1, 7), gaveBack(noon+40, audit.Released, "a", 7)}, []string{"7 daily c"}},
		"what may have been given back does not count": {daily, []*audit.Record{sent(noon, "a", 1, 7),
			sent(noon+10, "b", 1, 7),
			gaveBack(noon+20, audit.ReleaseUnavailable, "a", 7), sent(noon+30, "c", 1, 7)}, nil},
		"what was found gone does not count": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			sent(noon+30, "c", 1, 7),
			gaveBack(noon+40, audit.Absent, "a", 7)}, nil},
		"given back twice": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			sent(noon+30, "c", 1, 7),
			gaveBack(noon+40, audit.Released, "a", 7), gaveBack(noon+50, audit.Absent, "a", 7)}, []string{"7 daily c"}},
		"calendar: one a day": {calendar, []*audit.Record{sent(late-10, "a", 1, 7), sent(late+1, "b", 1, 7)}, nil},
		"calendar: two a day": {calendar, []*audit.Record{sent(late, "a", 1, 7), sent(late+5*hour, "b", 1, 7)},
			[]string{"7 today b"}},
		"calendar: about midnight": {calendar, []*audit.Record{sent(late-1, "a", 1, 7), sent(late+5*hour, "b", 1, 7)},
			nil},
		"the user's day": {own, []*audit.Record{sent(noon+3*hour, "a", 1, 7, 2000), sent(noon+5*hour, "b", 1, 7, 2000),
			sent(noon+13*hour, "c", 1, 2000)},
			[]string{"7 today b", "2000 today c"}},
		"a channel's": {push, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 2, 7),
			sent(noon+20, "c", 2, 7), sent(noon+30, "d", 1, 7)}, []string{"7 push d"}},
		"segments": {new, []*audit.Record{sent(noon, "a", 1, 7, 300), sent(noon+10, "b", 1, 7, 300),
			sent(noon+20, "c", 1, 300), sent(noon+30, "d", 1, 300)}, []string{"7 daily b", "300 daily d"}},
		"no segments there": {new,
			[]*audit.Record{changed(sent(noon, "a", 1, 7), func(r *audit.Record) { r.Generation = "g0" }),
				changed(sent(noon+10, "b", 1, 7), func(r *audit.Record) { r.Generation = "g0" })}, nil},
		"shadow": {map[string]string{"c1": "  default: [{name: s, max: 0, window: 1h, shadow: true}]\n"},
			[]*audit.Record{sent(noon, "a", 1, 7)}, nil},
		"none at all": {map[string]string{"c1": "  default: {daily: 0}\n"},
			[]*audit.Record{sent(noon, "a", 1, 7)}, []string{"7 daily a"}},
		"replays are no new": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "b", 1, 7),
			changed(sent(noon+20, "b", 1, 7), func(r *audit.Record) { r.Groups[0].Outcome = audit.Replayed })}, nil},
		"a limit that was tightened": {map[string]string{"c1": "  default: {daily: 3}\n",
			"c2": "  default: {daily: 1}\n"},
			[]*audit.Record{sent(noon, "a", 1, 7, 8), sent(noon+10, "b", 1, 7), changed(sent(noon+20, "c", 1, 9),
				under("c2")), changed(sent(noon+30, "d", 1, 8), under("c2"))},
			[]string{"8 daily d"}},
		"what a shorter retention may have forgotten": {map[string]string{"c1": "  default: {weekly: 1}\n",
			"c2": "  default: {daily: 9}\n"},
			[]*audit.Record{sent(noon, "a", 1, 7), changed(sent(noon+2*day, "b", 1, 9), under("c2")),
				sent(noon+3*day, "c", 1, 7)}, nil},
		"recorded anew": {daily, []*audit.Record{sent(noon, "a", 1, 7), sent(noon+10, "a", 1, 7),
			sent(noon+20, "b", 1, 7)}, nil},
		"a policy that is gone": {map[string]string{}, []*audit.Record{sent(noon, "a", 1, 7)},
			[]string{`no_policy: policy "c1": the audit lacks the limits of this configuration version: ` +
				`not found: sends under this policy are not checked`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ElementsMatch(t, c.want, overs(check(t, c.policies, verify.Config{}, c.records...)))
			require.ElementsMatch(t, c.want, overs(check(t, c.policies, verify.Config{Events: 1}, c.records...)),
				"in as many passes as can be")
		})
	}
}

// Over-sends until a time are accepted: later ones are findings, and the accepted ones count towards them.
func TestOverSendsAreAcceptedUntilATime(t *testing.T) {
	t.Parallel()
	daily := map[string]string{"c1": "  default: {daily: 1}\n"}
	records := []*audit.Record{
		sent(noon, "a", 1, 7, 8), sent(noon+hour, "b", 1, 7, 8), sent(noon+hour+1, "c", 1, 9),
		sent(noon+20*hour, "d", 1, 7, 9),
	}
	for until, want := range map[capping.Instant][]string{
		0:               {"7 daily b", "8 daily b", "7 daily d", "9 daily d"},
		noon + hour - 1: {"7 daily b", "8 daily b", "7 daily d", "9 daily d"},
		noon + hour:     {"7 daily d", "9 daily d"},
		noon + 20*hour:  nil,
	} {
		report := check(t, daily, verify.Config{AcceptedUntil: until}, records...)
		require.ElementsMatch(t, want, overs(report), until)
		require.Equal(t, 4-len(want), report.Accepted, until)
		require.Equal(t, len(want) == 0, report.Healthy(), until)
	}
}

func TestClocksOfInstancesMayBeApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slack time.Duration
		apart capping.Instant // of the beginnings of two calls, each of 2 ms
		want  int
	}{{0, 3, 0}, {0, 4, 1}, {0, 500, 1}, {time.Second, 500, 0}, {time.Second, 1003, 0}, {time.Second, 1004, 1}} {
		at := objects.NewDirectory(t.TempDir())
		audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 1}\n")
		widened := func(r *audit.Record) { r.Widening = c.slack }
		a, b := audittest.NewWriter(at, 1), audittest.NewWriter(at, 2)
		a.Widening, b.Widening = c.slack, c.slack
		a.Roll(t, audittest.Frames(changed(changed(sent(noon, "a", 1, 7), exempt), widened))...)
		b.Roll(t, audittest.Frames(changed(sent(noon+c.apart, "b", 1, 7), widened))...)
		report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy), verify.Config{Segments: worlds})
		require.NoError(t, err)
		require.Len(t, report.Findings, c.want, "%+v", c)
	}
}

// A release that a dying instance did not write may have made room: sends are over a limit
// for certain only where none can be missing between them.
func TestWhatADeadInstanceDidNotWriteIsNotHeldAgainstAnybody(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		died, closed capping.Instant
		want         []string
	}{
		"between the sends": {noon + hour, noon + 2*hour, nil},
		"over all of them":  {noon - hour, noon + 9*hour, nil},
		"before them":       {noon - 3*hour, noon - 2*hour, []string{"7 daily b"}},
		"after them":        {noon + 8*hour, noon + 9*hour, []string{"7 daily b"}},
	} {
		t.Run(name, func(t *testing.T) {
			at := objects.NewDirectory(t.TempDir())
			audittest.Policy(t, at, "c1", "version: c1\n"+head+"  default: {daily: 1}\n")
			audittest.NewWriter(at, 1).Roll(t, audittest.Frames(sent(noon, "a", 1, 7), sent(noon+6*hour, "b", 1, 7))...)
			audittest.NewWriter(at, 2).Die(t, c.closed, audittest.Frames(sent(c.died, "other", 1, 8))...)
			report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy),
				verify.Config{Segments: worlds})
			require.NoError(t, err)
			require.Equal(t, c.want, overs(report))
		})
	}
}

func TestErasuresThatAreNotThereOrStandForOthers(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	put := func(key, own string) {
		sealed, err := audit.Seal(audit.Erasure{Key: own, Users: []capping.UserID{7}, At: noon.Time()})
		require.NoError(t, err)
		require.NoError(t, at.Overwrite(t.Context(), key, sealed))
	}
	const instance = "00000000000000aa"
	put(audit.ErasedKey(instance, 1), audit.ErasedKey(instance, 1))
	put(audit.ErasedKey(instance, 2), audit.ErasedKey(instance, 1))
	put(audit.ErasedKey(instance, 4), "")
	put(audit.ErasedPrefix+"copy-of-1.json", "")
	report, err := verify.Check(t.Context(), archive.New(at, config.ParsePolicy), verify.Config{Segments: worlds})
	require.NoError(t, err)
	require.Equal(t, map[string]int{verify.Disagrees: 1, verify.Stranger: 1}, report.Found)
	require.Len(t, report.Notes, 1)
	require.Contains(t, report.Notes[0], "1 of the 4 erasures of instance "+instance)
}
