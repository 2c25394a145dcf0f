package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/live"
)

const withSets = `segments: {source: segments}
limits: {default: {daily: 1}}
suppress: {opted-out: all, sms-stop: all}
`

const listsKey = "client: web, id: web-1, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestSetsAreRead(t *testing.T) {
	t.Parallel()
	c, err := Parse("capper.yaml", []byte(withSets+"sets: {opted-out: {live: true}, sms-stop: {max_live: 7}}\n"))
	require.NoError(t, err)
	require.Equal(t, live.Rules{"opted-out": {Live: true}, "sms-stop": {Max: 7}}, c.Sets)
	require.Empty(t, c.Warnings)
	require.True(t, c.Sets.IsLive("opted-out"))
	require.False(t, c.Sets.IsLive("sms-stop"))
	require.Equal(t, live.DefaultMax, c.Sets.Max("opted-out"))
	require.Equal(t, 7, c.Sets.Max("sms-stop"))
	require.Equal(t, live.DefaultMax, c.Sets.Max("bounced"))

	without, err := Parse("capper.yaml", []byte(withSets))
	require.NoError(t, err)
	require.NotEqual(t, without.Version, c.Version, "all instances must agree on live sets")
	_, err = ParsePolicy(c.PolicyText)
	require.NoError(t, err)
	require.NotContains(t, string(c.PolicyText), "sets:")
	_, err = ParsePolicy([]byte(withSets + "sets: {opted-out: {live: true}}\n"))
	require.NoError(t, err)

	c, err = Parse("capper.yaml", []byte(withSets+"sets: {other: {live: true}}\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"sets.other: neither suppress nor quiet names the set, so calls that change it have no " +
		"effect on decisions"}, c.Warnings)
}

func TestKeysOfSetsAreRead(t *testing.T) {
	t.Parallel()
	c, err := Parse("capper.yaml", []byte(withSets+
		"server: {api_keys: [{"+listsKey+", scopes: [lists], sets: [opted-out, country/sg]}]}\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"opted-out", "country/sg"}, c.Server.Access.Keys[0].Sets)
	require.Equal(t, []string{"server.api_keys[0].sets: key web-1 is bound to the set country/sg, but sets, suppress " +
		"and quiet do not name it: calls that change the set are rejected with 404 unless a generation contains it"},
		c.Warnings)
}

func TestFaultsOfSets(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		"sets: []":                                `sets: must be a mapping`,
		"sets: {opted-out: {}}":                   `sets.opted-out: must have live or max_live`,
		"sets: {opted-out: {live: 1}}":            `sets.opted-out.live: must be true or false`,
		"sets: {opted-out: {max_live: 0}}":        `sets.opted-out.max_live: must be 1 to 1000000000, got 0`,
		"sets: {opted-out: {max: 1}}":             `sets.opted-out.max: `,
		"sets: {'a b': {live: true}}":             `must be 1 to 128 letters`,
		"sets: {all: {live: true}}":               `is reserved in results and expressions`,
		"sets: {tz/Asia/Singapore: {live: true}}": `must not be a set of a time zone`,
		"server: {api_keys: [{" + listsKey + ", scopes: [lists], sets: []}]}": "api_keys[0].sets: must name at " +
			"least one " +
			"set; leave the key out to allow all sets",
		"server: {api_keys: [{" + listsKey + ", scopes: [lists], sets: [a, a]}]}":  `sets[1]: is given twice: "a"`,
		"server: {api_keys: [{" + listsKey + ", scopes: [lists], sets: ['a b']}]}": `sets[0]: must be`,
		"server: {api_keys: [{" + listsKey + ", scopes: [lists], sets: [tz/UTC]}]}": "sets[0]: must not be a set " +
			"of a " +
			"time zone",
		"server: {api_keys: [{" + listsKey + ", scopes: [read], sets: [opted-out]}]}": "api_keys[0].sets: must " +
			"be absent " +
			"for a key without the scope lists",
	} {
		_, err := Parse("capper.yaml", []byte(withSets+text+"\n"))
		require.Error(t, err, text)
		require.Contains(t, strings.ReplaceAll(err.Error(), "\n", " "), fault, text)
	}
}
