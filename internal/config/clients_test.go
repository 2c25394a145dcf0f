package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/server/gate"
)

const twoClients = `server:
  api_keys:
    - {client: crm, id: c1, sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [filter]}
    - {client: otp, id: o1, sha256: 8f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [filter]}
    - {client: ops, id: p1, sha256: 7f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, scopes: [admin]}
`

func TestClientsNameTheirPacers(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte("clients: {crm: {pacers: [carrier, fcm]}}\n"+minimal+twoClients+fivePacers))
	require.NoError(t, err)
	rules := c.Server.Access
	require.Equal(t, map[string][]string{"crm": {"carrier", "fcm"}}, rules.Pacers)
	require.Equal(t, []string{"crm", "otp"}, rules.PacingClients("carrier"))
	require.Equal(t, []string{"otp"}, rules.PacingClients("twilio"))

	next, err := Parse("f", []byte(minimal+twoClients+fivePacers))
	require.NoError(t, err)
	require.Nil(t, next.Server.Access.Pacers)
	require.NoError(t, c.reloadable("f", next, nil, nil), "a reload changes the pacers of clients")
	require.NotEqual(t, c.Version, next.Version)
}

func TestClientsHaveShares(t *testing.T) {
	t.Parallel()
	const pacers = "pacers: {carrier: {rate: 250/s, shares: {otp: 20%, alerts: 5%}}}\n"
	c, err := Parse("f", []byte("clients: {crm: {shares: [alerts]}, otp: {share: otp, pacers: [carrier]}}\n"+minimal+
		twoClients+pacers))
	require.NoError(t, err)
	rules := c.Server.Access
	require.Equal(t, map[string]gate.Shares{"crm": {May: []string{"alerts"}}, "otp": {Own: "otp"}}, rules.Shares)
	for _, may := range []struct {
		client, share string
		want          bool
	}{
		{"crm", "alerts", true}, {"crm", "otp", false}, {"otp", "otp", true}, {"otp", "alerts", false},
		{"ops", "otp", false},
	} {
		require.Equal(t, may.want, rules.MayShare(may.client, may.share), "%+v", may)
	}
	require.True(t, rules.MayPace("crm", "carrier"), "shares bind no client to pacers")
}

func TestFaultsOfClients(t *testing.T) {
	t.Parallel()
	for clients, want := range map[string]string{
		"[crm]":                         "clients: must be a mapping, got a list",
		"{growth: {pacers: [carrier]}}": `clients.growth: must be the client of a key in server.api_keys, got "growth"`,
		"{crm: {}}":                     "clients.crm.pacers: is required",
		"{crm: [carrier]}":              "clients.crm: must be a mapping",
		"{crm: {pacers: []}}":           "clients.crm.pacers: must name at least one pacer; leave the client out",
		"{crm: {pacers: carrier}}":      "clients.crm.pacers: must be a list",
		"{crm: {pacers: [carier]}}": `clients.crm.pacers[0]: must be a configured pacer, got "carier" ` +
			"(configured pacers: campaign, carrier, fcm, sender, twilio)",
		"{crm: {pacers: [a b]}}":      "clients.crm.pacers[0]: must be 1 to 64 letters",
		"{crm: {pacers: [7]}}":        "clients.crm.pacers[0]: must be",
		"{crm: {pacers: [fcm, fcm]}}": `clients.crm.pacers[1]: must be unique: "fcm" is given twice`,
		"{crm: {share: otp}}": `clients.crm.share: must be a share of a configured pacer, got "otp" ` +
			"(shares: none)",
		"{crm: {shares: []}}":                "clients.crm.shares: must name at least one share",
		"{crm: {shares: [a b]}}":             "clients.crm.shares[0]: must be 1 to 64 letters",
		"{crm: {pacers: [fcm], scopes: []}}": "clients.crm.scopes: is not a known key",
	} {
		_, err := Parse("f", []byte("clients: "+clients+"\n"+minimal+twoClients+fivePacers))
		require.ErrorContains(t, err, want)
		require.Equal(t, 1, strings.Count(err.Error(), "clients"), "%v", err)
	}
}
