package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/quiet"
	"capper/internal/share"
	"capper/internal/yamltree"
	"capper/internal/zones"
)

// withheld contains every key that withholds sends, and the related keys.
const withheld = `channels: {push: 1, email: 2, sms: 3}
suppress: {opted-out: all, sms-stop: [sms], bounced: {channels: [email], even_exempt: true}}
quiet: [{from: "21:00", to: "08:00", channels: [sms, push], zone: user}]
holdout: {percent: 5, salt: "2027-q1", channels: [push]}
timezone: Asia/Singapore
audiences: {engaged: "active | vip"}
`

func TestParseReadsWhatWithholdsSends(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal+withheld))
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.Equal(t, []capping.Suppression{
		{Set: "opted-out", MayLose: 0.1},
		{Set: "sms-stop", Channels: capping.ChannelSetOf(3), MayLose: 0.1},
		{Set: "bounced", Channels: capping.ChannelSetOf(2), EvenExempt: true, MayLose: 0.1},
	}, c.Policy.Suppress, "in the order of the file")
	require.Equal(t, []capping.Quiet{{Hours: quiet.Hours{From: 21 * 60, To: 8 * 60}, Channels: capping.ChannelSetOf(1,
		3), UserZone: true}}, c.Policy.Quiet)
	five, err := share.New(share.Holdout, 5, "2027-q1")
	require.NoError(t, err)
	require.Equal(t, &capping.Holdout{Share: five, Channels: capping.ChannelSetOf(1)}, c.Policy.Holdout)
	require.Equal(t, "Asia/Singapore", c.Policy.Zone.String())
	require.Equal(t, []string{"engaged"}, c.Audiences.Names())
	require.Equal(t, "active | vip", c.Audiences.Text("engaged"))

	c, err = Parse("f", []byte(minimal))
	require.NoError(t, err)
	require.Empty(t, c.Policy.Suppress)
	require.Empty(t, c.Policy.Quiet)
	require.Nil(t, c.Policy.Holdout)
	require.Nil(t, c.Policy.Zone)
	require.Empty(t, c.Policy.Sets())
	require.Empty(t, c.Audiences.Names())
}

// TestParseReadsWhatWithholdsSendsWrittenAtLength checks the long notations, with anchors in earlier sections, in
// every order of the sections.
func TestParseReadsWhatWithholdsSendsWrittenAtLength(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(`segments: {source: d}
suppress:
  country/sg: all
  tz/Etc/GMT+8: {even_exempt: true}
  a+b: {channels: all}
  loud: &loud [push, sms]
  louder: {channels: *loud, even_exempt: false}
quiet:
  - from: 21:00
    to: 08:00
    sets: [country/de, country/at]
  - {from: "12:00", to: "13:30", zone: Europe/Berlin, channels: *loud}
holdout:
  percent: 0.25
  salt: |-
    2027 q1
audiences:
  engaged: active - vip # without the best
  week: engaged & (new | vip)
limits:
  default:
    - {name: day, max: 1, calendar: day, timezone: user}
    - {name: month, max: 9, calendar: month, timezone: Asia/Singapore}
    - {name: strict, max: 1, window: 48h, shadow: true, channels: *loud}
    - {name: loud, max: 2, calendar: week, shadow: false}
timezone: Europe/Lisbon
channels: {push: 1, email: 2, sms: 3}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"quiet[0].zone is not set: the hours are in UTC"}, c.Warnings)
	loud := capping.ChannelSetOf(1, 3)
	require.Equal(t, []capping.Suppression{
		{Set: "country/sg", MayLose: 0.1}, {Set: "tz/Etc/GMT+8", EvenExempt: true, MayLose: 0.1},
		{Set: "a+b", MayLose: 0.1}, {Set: "loud", Channels: loud, MayLose: 0.1},
		{Set: "louder", Channels: loud, MayLose: 0.1},
	}, c.Policy.Suppress)
	require.Equal(t, []string{"country/de", "country/at"}, c.Policy.Quiet[0].Sets)
	require.Nil(t, c.Policy.Quiet[0].Location, "UTC")
	require.Equal(t, "Europe/Berlin", c.Policy.Quiet[1].Location.String())
	require.Equal(t, quiet.Hours{From: 12 * 60, To: 13*60 + 30}, c.Policy.Quiet[1].Hours)
	require.InDelta(t, 0.25, c.Policy.Holdout.Share.Percent(), 0)
	require.Equal(t, "2027 q1", c.Policy.Holdout.Share.Salt())
	require.Equal(t, []string{"engaged", "week"}, c.Audiences.Names())
	require.Equal(t, "engaged & (new | vip)", c.Audiences.Text("week"))
	singapore, err := zones.Load("Asia/Singapore")
	require.NoError(t, err)
	require.Equal(t, []capping.Limit{
		{Name: "day", Max: 1, Calendar: capping.CalendarDay, UserZone: true},
		{Name: "month", Max: 9, Calendar: capping.CalendarMonth, Location: singapore},
		{Name: "strict", Max: 1, Window: 48 * time.Hour, Shadow: true, Channels: loud},
		{Name: "loud", Max: 2, Calendar: capping.CalendarWeek, Location: time.UTC},
	}, c.Policy.Default)
	require.Equal(t, []string{"a+b", "country/at", "country/de", "country/sg", "loud", "louder", "tz/Etc/GMT+8"},
		c.Policy.Sets())
}

func TestFaultsOfWhatWithholdsSends(t *testing.T) {
	t.Parallel()
	const rest = "segments: {source: d}\nchannels: {push: 1, sms: 2}\n"
	const someLimits = rest + "limits: {default: {daily: 1}}\n"
	suppress := func(text string) string { return someLimits + "suppress: " + text + "\n" }
	hours := func(text string) string { return someLimits + "quiet: [{" + text + "}]\n" }
	held := func(text string) string { return someLimits + "holdout: " + text + "\n" }
	limit := func(text string) string { return rest + "limits: {default: [{" + text + "}]}\n" }
	for name, c := range map[string]struct{ yaml, want string }{
		"suppress a list": {suppress("[opted-out]"), "f:4:11: suppress: must be a mapping with the names " +
			"of sets as keys, such as {opted-out: all}, got a list"},
		"suppress nothing": {suppress(""), "f:4:1: suppress: must have a value"},
		"suppress twice":   {suppress("{a: all, a: all}"), "f:4:20: suppress.a: is given twice"},
		"suppress null": {suppress("{opted-out: }"),
			"suppress.opted-out: must be all, a list of channels, or a mapping of channels, even_exempt, may_lose " +
				"and max_age, got nothing"},
		"suppress true": {suppress("{opted-out: true}"),
			"f:4:23: suppress.opted-out: must be all, a list of channels, or a mapping of channels, even_exempt, " +
				"may_lose and max_age, got true"},
		"suppress a channel": {suppress("{opted-out: sms}"),
			`suppress.opted-out: must be all, a list of channels, or a mapping of channels, even_exempt, may_lose and max_age, got "sms"`},
		"suppress ALL": {suppress("{opted-out: ALL}"), `max_age, got "ALL"`},
		"suppress an empty mapping": {suppress("{opted-out: {}}"),
			"suppress.opted-out: must name the sends to suppress: all, a list of channels, or a mapping of " +
				"channels, even_exempt, may_lose and max_age"},
		"suppress no channel": {suppress("{opted-out: []}"), "suppress.opted-out: must not be empty"},
		"suppress unknown channel": {suppress("{opted-out: [fax]}"),
			`f:4:24: suppress.opted-out[0]: must be one of the configured channels, got "fax"`},
		"suppress channel twice": {suppress("{opted-out: [sms, sms]}"),
			`suppress.opted-out[1]: is given twice: "sms"`},
		"suppress all in a list": {suppress("{opted-out: [all]}"),
			`suppress.opted-out[0]: must be one of the configured channels, got "all"`},
		"suppress channels one": {suppress("{opted-out: {channels: sms}}"),
			`suppress.opted-out.channels: must be all or a list of channels, got "sms"`},
		"suppress channels null": {suppress("{opted-out: {channels: }}"),
			"suppress.opted-out.channels: must have a value"},
		"suppress even_exempt a word": {suppress("{opted-out: {even_exempt: 'yes'}}"),
			`suppress.opted-out.even_exempt: must be true or false, got "yes"`},
		"suppress unknown key": {suppress("{opted-out: {chanels: [sms]}}"),
			`f:4:24: suppress.opted-out.chanels: is not a known key; did you mean "channels"?`},
		"suppress name": {suppress("{/a: all}"),
			`f:4:12: suppress./a: must be 1 to 128 letters, digits, '.', '_', '-', '+' or '/', beginning with a letter or digit; the parts between slashes must not be empty, '.' or '..', got "/a"`},
		"suppress long name": {suppress("{" + strings.Repeat("a", 129) + ": all}"), "must be 1 to 128 letters"},
		"suppress everybody": {suppress("{all: all}"),
			`suppress.all: is reserved in results and expressions, got "all"`},
		"suppress default": {suppress("{default: all}"), "suppress.default: is reserved"},
		"suppress no zone": {suppress("{tz/Mars/Olympus: all}"),
			`"Mars/Olympus": must be a time zone of the IANA database such as Asia/Singapore`},
		"suppress merge": {suppress("{<<: {a: all}}"), "merge keys are not supported"},
		"suppress too many": {suppress("{" + suppressionsOf(251) + "}"),
			"f:4:11: suppress: must be at most 250 sets, got 251"},

		"quiet a mapping": {someLimits + "quiet: {from: '21:00', to: '08:00'}\n",
			"f:4:8: quiet: must be a list, got a mapping"},
		"quiet a word":  {someLimits + "quiet: [night]\n", `quiet[0]: must be a mapping, got "night"`},
		"quiet no from": {hours("to: '08:00'"), "f:4:9: quiet[0].from: is required"},
		"quiet no to":   {hours("from: '08:00'"), "quiet[0].to: is required"},
		"quiet misspelt to": {hours("from: '08:00', too: '09:00'"),
			`f:4:25: quiet[0].too: is not a known key; did you mean "to"?`},
		"quiet from = to": {hours("from: '08:00', to: '08:00'"),
			"f:4:29: quiet[0].to: must differ from from, got 08:00 for both: put users who must never receive " +
				"messages into a set under suppress"},
		"quiet 24:00": {hours("from: '21:00', to: '24:00'"),
			`f:4:29: quiet[0].to: must be a time of the day from 00:00 to 23:59, got "24:00"; midnight is 00:00`},
		"quiet 9:00": {hours("from: '9:00', to: '10:00'"),
			`f:4:16: quiet[0].from: must be a time of the day from 00:00 to 23:59, got "9:00"; did you mean 09:00?`},
		"quiet seconds": {hours("from: '21:00:00', to: '10:00'"), `got "21:00:00"`},
		"quiet pm":      {hours("from: 9pm, to: '10:00'"), `got "9pm"`},
		"quiet a number": {hours("from: 1260, to: '10:00'"),
			`f:4:16: quiet[0].from: must be a time of the day in quotes, such as "21:00", got 1260`},
		"quiet a list": {hours("from: [21], to: '10:00'"),
			`quiet[0].from: must be a time of the day in quotes, such as "21:00", got a list`},
		"quiet null":    {hours("from: , to: '10:00'"), "quiet[0].from: must have a value"},
		"quiet minutes": {hours("from: '21:60', to: '10:00'"), `got "21:60"`},
		"quiet signs":   {hours("from: '+1:00', to: '10:00'"), `got "+1:00"`},
		"quiet zone": {hours("from: '21:00', to: '08:00', zone: Mars/Olympus"),
			`f:4:44: quiet[0].zone: must be user, or a time zone of the IANA database such as Asia/Singapore, got "Mars/Olympus"`},
		"quiet zone Local": {hours("from: '21:00', to: '08:00', zone: Local"), `got "Local"`},
		"quiet zone empty": {hours("from: '21:00', to: '08:00', zone: ''"), "quiet[0].zone: must not be empty"},
		"quiet zone up":    {hours("from: '21:00', to: '08:00', zone: ../UTC"), `got "../UTC"`},
		"quiet timezone": {hours("from: '21:00', to: '08:00', timezone: UTC"),
			"quiet[0].timezone: is not a known key"},
		"quiet channel": {hours("from: '21:00', to: '08:00', channels: [fax]"),
			`quiet[0].channels[0]: must be one of the configured channels, got "fax"`},
		"quiet channels all": {hours("from: '21:00', to: '08:00', channels: all"),
			`quiet[0].channels: must be a list, got "all"`},
		"quiet no sets": {hours("from: '21:00', to: '08:00', sets: []"),
			"quiet[0].sets: must name 1 to 64 sets, got 0; leave it out to include all users"},
		"quiet one set": {hours("from: '21:00', to: '08:00', sets: country/de"),
			`quiet[0].sets: must be a list, got "country/de"`},
		"quiet set twice": {hours("from: '21:00', to: '08:00', sets: [de, de]"),
			`quiet[0].sets[1]: is given twice: "de"`},
		"quiet set number": {hours("from: '21:00', to: '08:00', sets: [1]"),
			"quiet[0].sets[0]: must be a string, got 1"},
		"quiet set name": {hours("from: '21:00', to: '08:00', sets: [a b]"),
			`quiet[0].sets[0]: must be 1 to 128 letters, digits, '.', '_', '-', '+' or '/', beginning with a letter or digit; the parts between slashes must not be empty, '.' or '..', got "a b"`},
		"quiet too many sets": {hours("from: '21:00', to: '08:00', sets: [" + setsOf(65) + "]"),
			"quiet[0].sets: must name 1 to 64 sets, got 65"},
		"quiet too many of sets": {someLimits + "quiet: [" + strings.Repeat("{from: '01:00', to: '02:00', sets: [a]}, ",
			9) + "]\n", "quiet: must have at most 8 entries with sets, got 9"},
		"quiet too many": {someLimits + "quiet: [" + strings.Repeat("{from: '01:00', to: '02:00'}, ", 17) +
			"]\n", "quiet: must have at most 16 entries, got 17"},
		"quiet all day": {someLimits + "quiet:\n- {from: '21:00', to: '08:00'}\n- {from: '08:00', to: '21:00'}\n",
			"f:6:3: quiet[1]: this entry and the earlier quiet hours leave no minute of the day for sends " +
				"without a channel: put users"},
		"quiet all day of some": {someLimits + "quiet:\n- {from: '21:00', to: '08:00', zone: user, sets: [de, " +
			"at]}\n- {from: '07:00', to: '20:00', zone: user, channels: [sms]}\n- {from: '20:00', to: '21:00', " +
			"zone: user, sets: [at]}\n", "f:7:3: quiet[2]: this entry and the earlier quiet hours leave no minute of " +
			"the day for sends on sms: put"},

		"holdout a number": {held("5"), "f:4:10: holdout: must be a mapping, got 5"},
		"holdout nothing":  {held("{salt: a}"), "holdout.percent: is required"},
		"holdout no salt":  {held("{percent: 5}"), "f:4:10: holdout.salt: is required"},
		"holdout 0": {held("{percent: 0, salt: a}"), "f:4:20: holdout.percent: must be a percentage above 0 and at " +
			"most 100, got 0"},
		"holdout negative": {held("{percent: -5, salt: a}"), "holdout.percent: must be a percentage above 0 and at " +
			"most " +
			"100, got -5"},
		"holdout too much": {held("{percent: 100.5, salt: a}"), "holdout.percent: must be a percentage above 0 and " +
			"at most " +
			"100, got 100.5"},
		"holdout sign": {held("{percent: 5%, salt: a}"),
			`holdout.percent: must be a number such as 5 or 0.5, got "5%"`},
		"holdout text": {held("{percent: '5', salt: a}"),
			`holdout.percent: must be a number such as 5 or 0.5, got "5"`},
		"holdout not a number": {held("{percent: .nan, salt: a}"), "holdout.percent: must be a number such as 5 or " +
			"0.5, got .nan"},
		"holdout infinite":    {held("{percent: .inf, salt: a}"), "got .inf"},
		"holdout octal":       {held("{percent: 010, salt: a}"), "got 010"},
		"holdout hexadecimal": {held("{percent: 0x5, salt: a}"), "got 0x5"},
		"holdout power":       {held("{percent: 1e1, salt: a}"), `got "1e1"`},
		"holdout list": {held("{percent: [5], salt: a}"), "holdout.percent: must be a number such as 5 or " +
			"0.5, got a list"},
		"holdout salt number": {held("{percent: 5, salt: 2027}"), "holdout.salt: must be a string, got 2027"},
		"holdout salt empty":  {held("{percent: 5, salt: ''}"), "holdout.salt: must not be empty"},
		"holdout salt too long": {held("{percent: 5, salt: " + strings.Repeat("a", 129) + "}"),
			"holdout.salt: must be a text of 1 to 128 bytes, got 129"},
		"holdout channel": {held("{percent: 5, salt: a, channels: [fax]}"),
			"holdout.channels[0]: must be one of the configured channels"},
		"holdout unknown key": {held("{percent: 5, slat: a}"),
			`holdout.slat: is not a known key; did you mean "salt"?`},

		"timezone of the machine": {someLimits + "timezone: localtime\n",
			`timezone: must be a time zone of the IANA database such as Asia/Singapore, got "localtime"`},
		"timezone with leap seconds": {someLimits + "timezone: right/UTC\n", `got "right/UTC"`},
		"timezone of none": {someLimits + "timezone: Mars/Olympus\n",
			`f:4:11: timezone: must be a time zone of the IANA database such as Asia/Singapore, got "Mars/Olympus"`},
		"timezone user": {someLimits + "timezone: user\n",
			`timezone: must be a time zone of the IANA database such as Asia/Singapore, got "user"`},
		"timezone city":     {someLimits + "timezone: berlin\n", `, got "berlin": did you mean Europe/Berlin?`},
		"timezone offset":   {someLimits + "timezone: '+08:00'\n", `got "+08:00"`},
		"timezone a number": {someLimits + "timezone: 8\n", "timezone: must be a string, got 8"},

		"limit user and window": {limit("name: a, max: 1, window: 1h, timezone: user"),
			"timezone: requires calendar"},
		"limit User": {limit("name: a, max: 1, calendar: day, timezone: User"),
			`limits.default[0].timezone: must be user, or a time zone of the IANA database such as Asia/Singapore, got "User"`},
		"limit year": {limit("name: a, max: 1, calendar: year"),
			`limits.default[0].calendar: must be one of day, week, month, got "year"`},
		"limit shadow a word": {limit("name: a, max: 1, window: 1h, shadow: 'true'"),
			`limits.default[0].shadow: must be true or false, got "true"`},
		"limit short and shadow": {rest + "limits: {default: {daily: 1, shadow: true}}\n",
			"limits.default.shadow: is not a known key"},
		"limit suppressed": {limit("name: suppressed, max: 1, window: 1h") + "suppress: {a: all}\n",
			"f:3:27: limits.default[0].name: must be another name, because results use this name for users denied by " +
				"suppress"},
		"limit holdout": {limit("name: holdout, max: 1, window: 1h") + "holdout: {percent: 1, salt: a}\n",
			"limits.default[0].name: must be another name, because results use this name for users denied by holdout"},
		"limit quiet": {"quiet: [{from: '21:00', to: '08:00'}]\n" + limit("name: quiet, max: 1, window: 1h"),
			"f:4:27: limits.default[0].name: must be another name, because results use this name for users denied by " +
				"quiet"},

		"audiences a list": {someLimits + "audiences: [a]\n", "audiences: must be a mapping, got a list"},
		"audience a list":  {someLimits + "audiences: {a: [b]}\n", "audiences.a: must be a string, got a list"},
		"audience empty":   {someLimits + "audiences: {a: ''}\n", "audiences.a: must not be empty"},
		"audience null":    {someLimits + "audiences: {a: }\n", "audiences.a: must be a string, got nothing"},
		"audience twice":   {someLimits + "audiences: {a: b, a: c}\n", "audiences.a: is given twice"},
		"audience of everybody": {someLimits + "audiences: {all: b}\n",
			`audiences.all: name "all" has a fixed meaning in audience expressions: use another name`},
		"audience name":        {someLimits + "audiences: {a b: b}\n", "audiences.a b: must be 1 to 128 letters"},
		"audience syntax":      {someLimits + "audiences: {b: vip, a: vip & | new}\n", "f:4:24: audiences.a: column 7"},
		"audience long syntax": {someLimits + "audiences:\n  a: |\n    vip &\n    ! new\n", "audiences.a: column 7"},
		"audience of itself": {someLimits + "audiences: {a: b - c, b: vip | a}\n",
			"audiences.a: a refers to itself: a → b → a"},
		"audience of only it": {someLimits + "audiences: {a: a}\n", "f:4:16: audiences.a: a refers to itself: a → a"},
		"audience huge": {someLimits + "audiences: {" + doubling(11) + "}\n",
			"audiences.a11: the audience expression must have at most 1024 names after its named expressions are " +
				"expanded"},
		"audiences too many": {someLimits + "audiences: {" + audiencesOf(1001) + "}\n",
			"audiences: must be at most 1000 audiences, got 1001"},
		"misspelt section": {someLimits + "supress: {a: all}\n",
			`f:4:1: supress: is not a known key; did you mean "suppress"?`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(c.yaml))
			var faults *yamltree.Faults
			require.True(t, errors.As(err, &faults), "%v", err)
			require.Contains(t, err.Error(), c.want)
			require.Len(t, faults.List, 1, "one slip is one fault: %v", err)
		})
	}
}

// suppressionsOf returns n valid suppressions.
func suppressionsOf(n int) string { return repeated(n, "s%d: all, ") }
func setsOf(n int) string         { return repeated(n, "s%d, ") }
func audiencesOf(n int) string    { return repeated(n, "a%d: vip, ") }

// doubling returns nested names, each with twice as many names as the previous one.
func doubling(n int) string {
	list := "a0: vip"
	for i := range n {
		list += fmt.Sprintf(", a%d: a%d | a%d", i+1, i, i)
	}
	return list
}

func repeated(n int, format string) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, format, i)
	}
	return list.String()
}

func TestEveryFaultOfWhatWithholdsSendsIsReportedAtOnceInOrder(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", []byte(strings.Join([]string{
		"segments: {source: d, keep: soon}",
		"quiet:",
		"  - {from: 24:00, to: 8:00, zone: Usr, channels: [fax]}",
		"  - {from: '08:00', to: '08:00'}",
		"suppress: {all: all, bounced: {channel: [email], even_exempt: 1}, x: []}",
		"holdout: {percent: 200, salt: " + strings.Repeat("a", 129) + "}",
		"limits:",
		"  default: [{name: quiet, max: 1, calendar: month, timezone: nowhere, shadow: 1}]",
		"timezone: user",
		"channels: {push: 1, email: 2}",
	}, "\n")))
	require.EqualError(t, err, strings.Join([]string{
		`f:1:29: segments.keep: must be a duration such as 30s or 24h, got "soon"`,
		`f:3:12: quiet[0].from: must be a time of the day from 00:00 to 23:59, got "24:00"; midnight is 00:00`,
		`f:3:23: quiet[0].to: must be a time of the day from 00:00 to 23:59, got "8:00"; did you mean 08:00?`,
		`f:3:35: quiet[0].zone: must be user, or a time zone of the IANA database such as Asia/Singapore, got "Usr"`,
		`f:3:51: quiet[0].channels[0]: must be one of the configured channels, got "fax"`,
		`f:4:25: quiet[1].to: must differ from from, got 08:00 for both: put users who must never receive messages into a set under suppress`,
		`f:5:12: suppress.all: is reserved in results and expressions, got "all"`,
		`f:5:32: suppress.bounced.channel: is not a known key; did you mean "channels"?`,
		`f:5:63: suppress.bounced.even_exempt: must be true or false, got 1`,
		`f:5:70: suppress.x: must not be empty: leave it out to include all channels`,
		`f:6:20: holdout.percent: must be a percentage above 0 and at most 100, got 200`,
		`f:6:31: holdout.salt: must be a text of 1 to 128 bytes, got 129`,
		`f:8:20: limits.default[0].name: must be another name, because results use this name for users denied by quiet`,
		`f:8:62: limits.default[0].timezone: must be user, or a time zone of the IANA database such as Asia/Singapore, got "nowhere"`,
		`f:8:79: limits.default[0].shadow: must be true or false, got 1`,
		`f:9:11: timezone: must be a time zone of the IANA database such as Asia/Singapore, got "user"`,
	}, "\n"))
}

func TestWarningsOfWhatWithholdsSends(t *testing.T) {
	t.Parallel()
	const start = "segments: {source: d}\nchannels: {push: 1, sms: 2}\n"
	const rest = start + "limits: {default: {daily: 1}}\n"
	for name, c := range map[string]struct {
		yaml string
		want []string
	}{
		"every channel suppressed": {rest + "suppress: {a: [push, sms], b: [push]}\n",
			[]string{"suppress.a: names every channel, which is not all: sends without a channel, and channels that " +
				"are added later, are not among them"}},
		"every channel held out": {rest + "holdout: {percent: 1, salt: a, channels: [sms, push]}\n",
			[]string{"holdout.channels: names every channel, which is not all: sends without a channel, and " +
				"channels that are added later, are not among them"}},
		"the only channel": {strings.ReplaceAll(rest, ", sms: 2", "") + "suppress: {a: [push]}\n", nil},
		"half of all users": {rest + "holdout: {percent: 50, salt: a}\n",
			[]string{"holdout.percent: 50 % of all users get nothing"}},
		"all users": {rest + "holdout: {percent: 100, salt: a}\n",
			[]string{"holdout.percent: 100 % of all users get nothing"}},
		"not half of them": {rest + "holdout: {percent: 49.9, salt: a}\n", nil},
		"hours of nobody": {rest + "quiet: [{from: '21:00', to: '08:00'}]\n",
			[]string{"quiet[0].zone is not set: the hours are in UTC"}},
		"hours of users": {rest + "quiet: [{from: '21:00', to: '08:00', zone: user}]\n",
			[]string{"timezone is not set: users in no set tz/… use UTC where the time zone of the user counts"}},
		"hours of users, both": {rest + "quiet: [{from: '21:00', to: '08:00', zone: user}]\ntimezone: UTC\n", nil},
		"days of users": {start + "limits: {segments: {vip: [{name: a, max: 1, calendar: day, timezone: user}]}, " +
			"default: {daily: 1}}\n",
			[]string{"timezone is not set: users in no set tz/… use UTC where the time zone of the user counts"}},
		"no days of users": {rest + "timezone: Asia/Singapore\n",
			[]string{"timezone has no effect: no limit and no quiet hours use the time zone of " +
				"the user"}},
		"all shadows": {start + "limits: {default: [{name: a, max: 1, window: 1h, shadow: true}]}\n",
			[]string{"limits.default: every limit is a shadow: these users are uncapped"}},
		"a limit without effect": {start + "limits: {default: {daily: 5, weekly: 3}}\n",
			[]string{"limits.default: the limit daily (max 5) has no effect: weekly counts the same sends for at " +
				"least as long, with max 3"}},
		"of one channel, without effect": {start + "limits: {default: {}, segments: {vip: [{name: a, max: 2, " +
			"window: 24h, channels: [sms]}, {name: b, max: 1, calendar: day}, {name: c, max: 1, window: 25h}]}}\n",
			[]string{"limits.segments.vip: the limit a (max 2) has no effect: c counts the same sends for at least " +
				"as long, with max 1"}},
		"calendar without effect": {start + "limits: {default: [{name: a, max: 2, calendar: day, timezone: " +
			"Asia/Tokyo}, {name: b, max: 1, calendar: month, timezone: Asia/Tokyo}]}\n",
			[]string{"limits.default: the limit a (max 2) has no effect: b counts the same sends for at least as " +
				"long, with max 1"}},
		"each with an effect": {start + "limits: {default: [{name: a, max: 2, calendar: day, timezone: Asia/Tokyo}, " +
			"{name: b, max: 1, calendar: week}, {name: c, max: 3, window: 720h}, {name: d, max: 4, window: 800h, " +
			"shadow: true}, {name: e, max: 1, window: 1h, channels: [sms]}, {name: f, max: 2, calendar: month}]}\n",
			nil},
		"a shadow and none": {start + "limits: {default: [{name: a, max: 1, window: 1h, shadow: true}, {name: b, " +
			"max: 2, window: 1h}]}\n", nil},
		"hardly open": {rest + "quiet:\n- {from: '21:00', to: '08:00', zone: UTC}\n- {from: '08:00', to: '20:15', " +
			"zone: UTC, channels: [sms]}\n",
			[]string{"quiet[1]: only 45m of the day are open to sends on sms"}},
		"one minute": {rest + "quiet: [{from: '00:00', to: '23:59', zone: UTC}]\n",
			[]string{"quiet[0]: only 1m of the day are open to sends without a channel"}},
		"to midnight": {rest + "quiet: [{from: '23:59', to: '00:00', zone: UTC}]\n", nil},
		"by other clocks": {rest + "quiet:\n- {from: '21:00', to: '08:00', zone: UTC}\n- {from: '08:00', to: " +
			"'21:00', zone: Asia/Tokyo}\n", nil},
		"of other users": {rest + "quiet:\n- {from: '21:00', to: '08:00', zone: UTC, sets: [a]}\n- {from: '08:00', " +
			"to: '21:00', zone: UTC, sets: [b]}\n", nil},
		"of other sends": {rest + "quiet:\n- {from: '21:00', to: '08:00', zone: UTC, channels: [sms]}\n- {from: " +
			"'08:00', to: '21:00', zone: UTC, channels: [push]}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := Parse("f", []byte(c.yaml))
			require.NoError(t, err)
			require.Equal(t, c.want, parsed.Warnings)
		})
	}
}

// TestNamesOfDenialsAreFreeWithoutThem checks that a limit may have the name suppressed when nothing is suppressed,
// so that older files remain valid.
func TestNamesOfDenialsAreFreeWithoutThem(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte("segments: {source: d}\nlimits: {default: [{name: suppressed, max: 1, window: 1h}, "+
		"{name: quiet, max: 1, window: 2h}]}\nholdout: {percent: 1, salt: a}\n"))
	require.NoError(t, err)
	require.Equal(t, "suppressed", c.Policy.Default[0].Name)
}

// TestWhatWithholdsSendsIsReloaded checks that a reload may change every key that withholds sends, except how long
// generations are kept.
func TestWhatWithholdsSendsIsReloaded(t *testing.T) {
	t.Parallel()
	was, wasGiven, err := parse("f", []byte(minimal+withheld))
	require.NoError(t, err)
	const channels = "channels: {push: 1, email: 2, sms: 3}\n"
	const meant = "no_longer_suppressed: [opted-out, sms-stop, bounced]\n"
	for _, next := range []string{meant, meant + channels, meant + channels +
		"suppress: {other: [push]}\nholdout: {percent: 50, salt: b}\nquiet: [{from: '00:00', to: " +
		"'00:01'}]\naudiences: {}\n"} {
		is, isGiven, err := parse("f", []byte(minimal+next))
		require.NoError(t, err)
		require.NoError(t, was.reloadable("f", is, wasGiven, isGiven))
	}
	is, isGiven, err := parse("f", []byte(strings.Replace(minimal, "testdata/segments", "testdata/segments, keep: 2h",
		1)+withheld))
	require.NoError(t, err)
	require.EqualError(t, was.reloadable("f", is, wasGiven, isGiven),
		"f: segments.keep: requires a restart; the configuration in force stays (not given, now 2h)")
}

// TestAllThatWithholdsSendsFitsIntoAFile checks that the maximum number of sets and hours can be read together.
func TestAllThatWithholdsSendsFitsIntoAFile(t *testing.T) {
	t.Parallel()
	var hours strings.Builder
	for i := range capping.MaxQuiet {
		of := ""
		if i < capping.MaxQuietOfSets {
			of = ", sets: [" + setsOf(maxQuietSets) + "]"
		}
		fmt.Fprintf(&hours, "- {from: '%02d:00', to: '%02d:30', zone: UTC%s}\n", i, i, of)
	}
	c, err := Parse("f", []byte(minimal+"suppress: {"+suppressionsOf(capping.MaxSuppress)+"}\nquiet:\n"+hours.String()))
	require.NoError(t, err)
	require.Len(t, c.Policy.Suppress, capping.MaxSuppress)
	require.Len(t, c.Policy.Quiet, capping.MaxQuiet)
}

func TestRequireChannel(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal+"require_channel: true\nchannels: {push: 1, required: 2}\n"))
	require.NoError(t, err)
	require.True(t, c.Policy.RequireChannel)
	require.Contains(t, c.Policy.Channels, "required", "a channel may be called so")
	c, err = Parse("f", []byte(minimal+"channels: {push: 1}\n"))
	require.NoError(t, err)
	require.False(t, c.Policy.RequireChannel)
	_, err = Parse("f", []byte(minimal+"require_channel: true\n"))
	require.ErrorContains(t, err, "require_channel: must not be true if no channels are configured")
	_, err = Parse("f", []byte(minimal+"require_channel: yes\n"))
	require.ErrorContains(t, err, "require_channel: must be true or false")
}

// TestLostSuppression compares two policies: the result must list the lost suppression by channel, for sends without
// a channel, and for exempt sends.
func TestLostSuppression(t *testing.T) {
	t.Parallel()
	policy := func(text string) *capping.Policy {
		c, err := Parse("f", []byte(minimal+text+"\n"))
		require.NoError(t, err)
		return c.Policy
	}
	const channels = "channels: {push: 1, email: 2, sms: 3}\nsuppress: "
	for name, c := range map[string]struct {
		was, is string
		want    []Lost
	}{
		"the same": {channels + "{a: all, b: [sms]}", channels + "{b: [sms], a: all}", nil},
		"more": {channels + "{a: [sms]}", channels + "{a: {channels: all, even_exempt: true}, b: all}",
			nil},
		"dropped": {channels + "{a: all, b: [sms]}", channels + "{b: [sms]}",
			[]Lost{{"a", true, "all sends"}}},
		"all dropped": {channels + "{a: all, b: [sms]}", "channels: {push: 1}",
			[]Lost{{"a", true, "all sends"}, {"b", true, "all sends"}}},
		"renamed": {channels + "{a: all}", channels + "{A: all}", []Lost{{"a", true, "all sends"}}},
		"fewer channels": {channels + "{a: [push, email, sms]}", channels + "{a: [email]}",
			[]Lost{{"a", false, "sends on push, sends on sms"}}},
		"all but none": {channels + "{a: all}", channels + "{a: [push, email, sms]}",
			[]Lost{{"a", false, "sends without a channel"}}},
		"not exempt": {channels + "{a: {even_exempt: true}}", channels + "{a: all}",
			[]Lost{{"a", false, "exempt sends"}}},
		"another channel": {channels + "{a: [push]}", channels + "{a: [sms]}",
			[]Lost{{"a", false, "sends on push"}}},
		"a channel that goes": {channels + "{a: [push, sms]}", "channels: {push: 1}\nsuppress: {a: [push]}", nil},
	} {
		require.Equal(t, c.want, LostSuppression(policy(c.was), policy(c.is)), name)
	}
}

func TestAcknowledgedSets(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal+"no_longer_suppressed: [a, b/c]\nless_suppressed: [d]\nsuppress: {d: all}\n"))
	require.NoError(t, err)
	require.Equal(t, Acknowledged{Dropped: []string{"a", "b/c"}, Narrowed: []string{"d"}}, c.Acknowledged)
	for text, why := range map[string]string{
		"suppress: {a: all}\nno_longer_suppressed: [b, " +
			"a]\n": "no_longer_suppressed[1]: must not name a, because suppress still names this set",
		"no_longer_suppressed: [a, a]\n": `is given twice: "a"`,
		"no_longer_suppressed: [-a]\n":   "no_longer_suppressed[0]",
		"no_longer_suppressed: a\n":      "no_longer_suppressed: must be a list",
		"less_suppressed: [a]\n": "less_suppressed[0]: must name sets under suppress, " +
			"but suppress does not name a",
	} {
		_, err := Parse("f", []byte(minimal+text))
		require.ErrorContains(t, err, why, text)
	}
}

func TestBoundsOfGuardedSets(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal+`channels: {push: 1, sms: 2}
suppress:
  opted-out: {may_lose: 0, max_age: 48h}
  stop: {channels: [sms], may_lose: 2.5%}
  bounced: {may_lose: 100%}
  both: all
quiet: [{from: "21:00", to: "08:00", zone: user, sets: [de, both]}, {from: "21:00", to: "08:00", zone: UTC,
    sets: [de, us], may_lose: 1%}]
timezone: UTC
`))
	require.NoError(t, err)
	require.Equal(t, []capping.Suppression{
		{Set: "opted-out", MaxAge: 48 * time.Hour},
		{Set: "stop", Channels: capping.ChannelSetOf(2), MayLose: 2.5},
		{Set: "bounced", MayLose: 100},
		{Set: "both", MayLose: 0.1},
	}, c.Policy.Suppress)
	g := Guarded(c.Policy)
	require.Equal(t, map[string]float64{"opted-out": 0, "stop": 2.5, "bounced": 100, "both": 0.1, "de": 1, "us": 1},
		g.MayLose, "the tighter bound of a set")
	require.True(t, g.Zones)

	for yaml, says := range map[string]string{
		"suppress: {a: {may_lose: 101%}}": "suppress.a.may_lose: must be a " +
			"percentage from 0 to 100% such as 0.1%, got ",
		"suppress: {a: {may_lose: -1%}}":  "suppress.a.may_lose: must be a percentage",
		"suppress: {a: {may_lose: all}}":  "suppress.a.may_lose: must be a percentage",
		"suppress: {a: {may_lose: 1e1%}}": "suppress.a.may_lose: must be a percentage",
		"suppress: {a: {may_lose: [1%]}}": "suppress.a.may_lose: must be a",
		"suppress: {a: {max_age: 10ms}}": "suppress.a.max_age: must be at least 1s, " +
			"got 10ms",
		"suppress: {a: {max_age: 48}}":                                   "suppress.a.max_age: must be a duration",
		"suppress: {a: {max_loss: 1%}}":                                  "suppress.a.max_loss: ",
		`quiet: [{from: "21:00", to: "08:00", zone: UTC, may_lose: 1%}]`: "quiet[0].may_lose: requires sets",
	} {
		_, err := Parse("f", []byte(minimal+yaml+"\n"))
		require.ErrorContains(t, err, says, yaml)
	}
	c, err = Parse("f", []byte(minimal))
	require.NoError(t, err)
	require.Empty(t, Guarded(c.Policy).MayLose)
	require.False(t, Guarded(c.Policy).Zones)
}
