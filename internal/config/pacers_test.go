package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
	"capper/internal/yamltree"
)

const fivePacers = `pacers:
  twilio:   {limits: [{max: 100, window: 1s}, {max: 50000, window: 24h}]}
  carrier:  {rate: 250/s, max_wait: 30s}
  fcm:
    limits:
      - {max: 600000, window: 1m}
  campaign: {limits: [{max: 50000, window: 1m}], per: message}
  sender: {rate: 1/s, per: key, group: sms}
`

func TestParseReadsPacers(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal))
	require.NoError(t, err)
	require.Equal(t, &pacing.Policy{Version: c.Version}, c.Pacers)
	c, err = Parse("f", []byte(minimal+fivePacers))
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.Equal(t, []pacing.Pacer{
		{Name: "twilio", Limits: []pacing.Limit{{Max: 100, Window: time.Second},
			{Max: 50_000, Window: 24 * time.Hour}}},
		{Name: "carrier", Rate: pacing.Rate{Permits: 250, Per: time.Second}, MaxWait: 30 * time.Second},
		{Name: "fcm", Limits: []pacing.Limit{{Max: 600_000, Window: time.Minute}}},
		{Name: "campaign", Limits: []pacing.Limit{{Max: 50_000, Window: time.Minute}}, Per: pacing.PerMessage},
		{Name: "sender", Rate: pacing.Rate{Permits: 1, Per: time.Second}, Per: pacing.PerKey,
			Group: "sms"},
	}, c.Pacers.Pacers, "in the order of the file")
}

func TestFaultsOfPacers(t *testing.T) {
	t.Parallel()
	limit := func(fields string) string { return "{x: {limits: [{" + fields + "}]}}" }
	for name, c := range map[string]struct{ pacers, want string }{
		"no mapping": {"[a]", "f:4:9: pacers: must be a mapping, got a list"},
		"nothing":    {"", "f:4:1: pacers: must have a value"},
		"name": {"{a b: {rate: 1/s}}",
			`f:4:10: pacers.a b: must be 1 to 64 letters, digits, '_', '.' and '-', beginning with a letter or digit, got "a b"`},
		"long name":   {"{" + strings.Repeat("a", 65) + ": {rate: 1/s}}", "must be 1 to 64 letters"},
		"twice":       {"{x: {rate: 1/s}, x: {rate: 2/s}}", "f:4:26: pacers.x: is given twice"},
		"null":        {"{x: }", "pacers.x: must be a mapping of limits, rate or both, got nothing"},
		"only a rate": {"{x: 250/s}", `pacers.x: must be a mapping of limits, rate or both, got "250/s"`},
		"only limits": {"{x: [{max: 1, window: 1s}]}", "pacers.x: must be a mapping of limits, rate or both, " +
			"got a list"},
		"neither": {"{x: {max_wait: 1s}}", "pacers.x: must have limits, a rate, or both"},
		"empty":   {"{x: {}}", "pacers.x: must have limits, a rate, or both"},
		"unknown": {"{x: {rate: 1/s, maxwait: 1s}}",
			`f:4:25: pacers.x.maxwait: is not a known key; did you mean "max_wait"?`},
		"misspelt": {"{x: {limit: [{max: 1, window: 1s}]}}",
			`pacers.x.limit: is not a known key; did you mean "limits"?`},
		"no list":          {"{x: {limits: {max: 1, window: 1s}}}", "pacers.x.limits: must be a list, got a mapping"},
		"no limit":         {"{x: {limits: []}}", "pacers.x.limits: must have 1 to 4 limits, got 0"},
		"no limit, a rate": {"{x: {limits: [], rate: 1/s}}", "pacers.x.limits: must have 1 to 4 limits, got 0"},
		"five limits":      {"{x: {limits: [" + limitsOf(5) + "]}}", "pacers.x.limits: must have 1 to 4 limits, got 5"},
		"limit no mapping": {"{x: {limits: [5]}}", "pacers.x.limits[0]: must be a mapping, got 5"},
		"limit unknown":    {limit("max: 1, window: 1s, name: a"), "pacers.x.limits[0].name: is not a known key"},
		"no max":           {limit("window: 1s"), "f:4:23: pacers.x.limits[0].max: is required"},
		"no window":        {limit("max: 1"), "f:4:23: pacers.x.limits[0].window: is required"},
		"max 0":            {limit("max: 0, window: 1s"), "pacers.x.limits[0].max: must be 1 to 10000000, got 0"},
		"max too much": {limit("max: 10000001, window: " +
			"1s"), "pacers.x.limits[0].max: must be 1 to 10000000, got 10000001"},
		"max fraction": {limit("max: 1.5, window: 1s"), "pacers.x.limits[0].max: must be a whole number in plain " +
			"digits, got 1.5"},
		"max word": {limit("max: 1k, window: 1s"),
			`pacers.x.limits[0].max: must be a whole number in plain digits, got "1k"`},
		"window number": {limit("max: 1, window: 60"), "pacers.x.limits[0].window: must be a duration such as 30s " +
			"or 24h, got 60"},
		"window days": {limit("max: 1, window: 7d"),
			`pacers.x.limits[0].window: must be a duration such as 30s or 24h, got "7d"; days are no unit here: ` +
				"write 168h"},
		"window short": {limit("max: 1, window: 999us"), "pacers.x.limits[0].window: must be at least 1ms, got 999us"},
		"window fine": {limit("max: 1, window: 1500us"), "pacers.x.limits[0].window: must be whole milliseconds, " +
			"got 1500us"},
		"window long": {limit("max: 1, window: 745h"), "pacers.x.limits[0].window: must be at most 744h, got 745h"},
		"same window": {"{x: {limits: [{max: 1, window: 1m}, {max: 2, window: 60s}]}}",
			"f:4:62: pacers.x.limits[1].window: must be unique, but 1m is also the duration of pacers.x.limits[0]"},
		"rate number": {"{x: {rate: 250}}", "f:4:20: pacers.x.rate: must be a number of permits per s, m, h or d, " +
			"or per a duration, such as 250/s"},
		"rate word":     {"{x: {rate: fast}}", `at least one in 31 days, got "fast"`},
		"rate zero":     {"{x: {rate: 0/s}}", `got "0/s"`},
		"rate too much": {"{x: {rate: 1000001/s}}", `got "1000001/s"`},
		"rate slow":     {"{x: {rate: 1/745h}}", `got "1/745h"`},
		"rate list": {"{x: {rate: [250/s]}}", "pacers.x.rate: must be a number of permits per s, m, h or d, or " +
			"per a duration, such as 250/s, 10/m or 100/10s, at most one permit a microsecond and at least one in " +
			"31 days, got a list"},
		"rate null": {"{x: {rate: }}", "pacers.x.rate: must have a value"},
		"wait zero": {"{x: {rate: 1/s, max_wait: 0s}}", "pacers.x.max_wait: must be at least 1ms, got 0s"},
		"wait number": {"{x: {rate: 1/s, max_wait: 0}}", "pacers.x.max_wait: must be a duration such as 30s or " +
			"24h, got 0"},
		"wait long":     {"{x: {rate: 1/s, max_wait: 25h}}", "pacers.x.max_wait: must be at most 24h, got 25h"},
		"wait negative": {"{x: {rate: 1/s, max_wait: -1s}}", "pacers.x.max_wait: must be at least 1ms, got -1s"},
		"group number":  {"{x: {rate: 1/s, group: 5}}", "f:4:32: pacers.x.group: must be a string, got 5"},
		"group star": {"{x: {rate: 1/s, group: '*'}}", `pacers.x.group: must be 1 to 64 letters, digits, '_', '.' and '-', ` +
			`beginning with a letter or digit, got "*"`},
		"group none":  {"{x: {rate: 1/s, group: }}", "pacers.x.group: must"},
		"per user":    {"{x: {rate: 1/s, per: user}}", `pacers.x.per: must be one of message, key, got "user"`},
		"shares no":   {"{x: {rate: 1/s, shares: {}}}", "pacers.x.shares: must"},
		"shares list": {"{x: {rate: 1/s, shares: [otp]}}", "pacers.x.shares: must be a mapping"},
		"shares much": {"{x: {rate: 1/s, shares: {a: 60%, b: 41%}}}", "pacers.x.shares: must add up " +
			"to at most 100%, got 101%"},
		"share zero": {"{x: {rate: 1/s, shares: {a: 0%}}}", "pacers.x.shares.a: must be a whole percentage from 1% " +
			"to 100%, such as 20%, got"},
		"share number": {"{x: {rate: 1/s, shares: {a: 20}}}", "pacers.x.shares.a: must be a whole percentage"},
		"share part":   {"{x: {rate: 1/s, shares: {a: 12.5%}}}", "pacers.x.shares.a: must be a whole percentage"},
		"share name":   {"{x: {rate: 1/s, shares: {a b: 10%}}}", "pacers.x.shares.a b: must be 1 to 64 letters"},
		"shares per": {"{x: {rate: 1/s, shares: {a: 10%}, per: key}}", "pacers.x.shares: must not be given " +
			"with per: a log for each key has no shares"},
		"shares slow": {"{x: {rate: 1/600h, shares: {a: 10%}}}", "pacers.x.shares: must be shares of a faster rate"},
		"shares many": {"{x: {rate: 1/s, shares: {a: 1%, b: 1%, c: 1%, d: 1%, e: 1%, f: 1%, g: 1%, h: 1%, i: 1%}}}",
			"pacers.x.shares: must have 1 to 8 shares, got 9"},
		"too many": {"{" + pacersOf(1001) + "}", "f:4:9: pacers: must be at most 1000 pacers, got 1001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(minimal+"pacers: "+c.pacers+"\n"))
			var faults *yamltree.Faults
			require.True(t, errors.As(err, &faults), "%v", err)
			require.Contains(t, err.Error(), c.want)
			require.Len(t, faults.List, 1, "one slip is one fault: %v", err)
		})
	}
}

// limitsOf returns n valid limits.
func limitsOf(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "{max: %d, window: %ds}, ", i+1, i+1)
	}
	return list.String()
}

func pacersOf(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, "p%d: {rate: 1/s}, ", i)
	}
	return list.String()
}

func TestEveryFaultOfPacersIsReportedAtOnceInOrder(t *testing.T) {
	t.Parallel()
	_, err := Parse("f", []byte(minimal+strings.Join([]string{
		"pacers:",
		"  twilio: {limits: [{max: 0, window: 1s}, {max: 5, window: 1s}], max_wait: 30h}",
		"  carrier: {rate: 250, per: segment}",
		"  fcm: {}",
	}, "\n")))
	require.EqualError(t, err, strings.Join([]string{
		`f:5:27: pacers.twilio.limits[0].max: must be 1 to 10000000, got 0`,
		`f:5:60: pacers.twilio.limits[1].window: must be unique, but 1s is also the duration of pacers.twilio.limits[0]`,
		`f:5:76: pacers.twilio.max_wait: must be at most 24h, got 30h`,
		`f:6:19: pacers.carrier.rate: ` + fmt.Sprintf(pacing.RateRule, "250"),
		`f:6:29: pacers.carrier.per: must be one of message, key, got "segment"`,
		`f:7:8: pacers.fcm: must have limits, a rate, or both`,
	}, "\n"))
}

func TestPacersHaveShares(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal+"pacers:\n  carrier: {rate: 250/s, shares: {otp: 20%, alerts: 5%}}\n"))
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.Equal(t, []pacing.Share{{Name: "otp", Percent: 20}, {Name: "alerts", Percent: 5}},
		c.Pacers.Pacers[0].Shares)
	next, err := Parse("f", []byte(minimal+"pacers:\n  carrier: {rate: 250/s, shares: {otp: 30%}}\n"))
	require.NoError(t, err)
	require.NoError(t, c.reloadable("f", next, nil, nil), "a reload changes shares")
	require.NotEqual(t, c.Version, next.Version)
}

// TestAFileWithoutMaxWaitBoundsItsPacers checks that the pacers of an earlier file, which has no max_wait, give out
// slots at most half a minute ahead. Earlier versions let such a pacer give out the slots of a whole day.
func TestAFileWithoutMaxWaitBoundsItsPacers(t *testing.T) {
	t.Parallel()
	const file = minimal + `pacers:
  day: {limits: [{max: 1, window: 24h}]}
  fcm: {limits: [{max: 600000, window: 1m}]}
  marketing: {rate: 50/s}
  patient: {rate: 50/s, max_wait: 24h}
`
	parsed, err := Parse("f", []byte(file))
	require.NoError(t, err)
	require.Empty(t, parsed.Warnings)
	pacers := pacing.New(pacingtest.NewMemory(testkit.NewClock().Now), parsed.Pacers)
	take := func(permits int, names ...string) *pacing.Answer {
		answer, err := pacers.Take(t.Context(), &pacing.Call{Pacers: names, Permits: permits, MaxWait: pacing.MaxWait})
		require.NoError(t, err)
		return answer
	}
	require.Equal(t, 1, take(1, "day").Granted)
	refused := take(1, "day", "fcm")
	require.Zero(t, refused.Granted)
	require.Equal(t, 24*time.Hour, refused.Next)
	require.Equal(t, 100_000, take(100_000, "fcm").Granted)
	require.Equal(t, 1501, take(pacing.MaxPermits, "marketing").Granted)
	require.Equal(t, pacing.MaxPermits, take(pacing.MaxPermits, "patient").Granted, "max_wait: 24h is as before")
}

func TestWarningsOfPacers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pacer string
		want  []string
	}{
		"greater max, shorter window": {"{limits: [{max: 100, window: 1m}, {max: 100, window: 1s}]}",
			[]string{"pacers.x.limits[1] changes nothing: limits[0] alone allows no more than 100 in any 1s"}},
		"never that many": {"{limits: [{max: 100, window: 1s}, {max: 6000, window: 1m}]}",
			[]string{"pacers.x.limits[1] changes nothing: limits[0] alone allows no more than 6000 in any 1m"}},
		"nearly that many":        {"{limits: [{max: 100, window: 1s}, {max: 5999, window: 1m}]}", nil},
		"windows that do not fit": {"{limits: [{max: 10, window: 1s}, {max: 19, window: 1500ms}]}", nil},
		"the rate is slower": {"{limits: [{max: 250, window: 1s}], rate: 250/s}",
			[]string{"pacers.x.limits[0] changes nothing: rate alone allows no more than 250 in any 1s"}},
		"the rate is faster for a second": {"{limits: [{max: 249, window: 1s}], rate: 250/s}", nil},
		"the limit spaces as well": {"{limits: [{max: 1, window: 10ms}], rate: 250/s}",
			[]string{"pacers.x.rate changes nothing: limits[0] alone allows no more than 1 in any 4ms"}},
		"the same": {"{limits: [{max: 1, window: 4ms}], rate: 250/s}",
			[]string{"pacers.x.rate changes nothing: limits[0] alone allows no more than 1 in any 4ms"}},
		"rounded": {"{rate: 300000/s}",
			[]string{"pacers.x.rate: 300000/s is one every 4µs, as intervals are whole microseconds: it gives " +
				"250000/s, 16.7 % less"}},
		"rounded, slowly": {"{rate: 998/1ms}", []string{"pacers.x.rate: 998/1ms is one every 2µs, as intervals are " +
			"whole microseconds: it gives 500000/s, 49.9 % less"}},
		"hardly rounded": {"{rate: 3/s}", nil},
		"both": {"{limits: [{max: 500000, window: 1s}], rate: 600000/s}", []string{
			"pacers.x.rate: 600000/s is one every 2µs, as intervals are whole microseconds: it gives 500000/s, " +
				"16.7 % less",
			"pacers.x.limits[0] changes nothing: rate alone allows no more than 500000 in any 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := Parse("f", []byte(minimal+"pacers: {x: "+strings.TrimSuffix(c.pacer,
				"}")+", max_wait: 1h}}\n"))
			require.NoError(t, err)
			require.Equal(t, c.want, parsed.Warnings)
		})
	}
}

// TestAllPacersFitIntoAFile checks that the maximum number of pacers with the longest settings fits into a file.
func TestAllPacersFitIntoAFile(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range maxPacers {
		fmt.Fprintf(&list, "  pacer-%d:\n    limits: [{max: 100, window: 1s}, {max: 50000, window: 24h}]\n    rate: "+
			"99/s\n    max_wait: 30s\n    per: message\n", i)
	}
	c, err := Parse("f", []byte(minimal+"pacers:\n"+list.String()))
	require.NoError(t, err)
	require.Len(t, c.Pacers.Pacers, maxPacers)
}

// TestPacersAreReloaded checks that a reload may change every key of pacers.
func TestPacersAreReloaded(t *testing.T) {
	t.Parallel()
	was, wasGiven, err := parse("f", []byte(minimal+fivePacers))
	require.NoError(t, err)
	for _, pacers := range []string{"", "pacers: {}\n", "pacers: {twilio: {rate: 1/s, max_wait: 1s, per: message}, " +
		"sender: {rate: 1/s}, other: {limits: [{max: 1, window: 1s}]}}\n"} {
		is, isGiven, err := parse("f", []byte(minimal+pacers))
		require.NoError(t, err)
		require.NoError(t, was.reloadable("f", is, wasGiven, isGiven))
	}
}
