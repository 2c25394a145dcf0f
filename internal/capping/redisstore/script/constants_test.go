package script

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// Every name in the texts is replaced, and every constant is used.
func TestConstantsAreThoseInUse(t *testing.T) {
	t.Parallel()
	texts := preludeSource + filterSource + unionSource + releaseSource + eraseSource + beatSource + rateSource +
		paceOneSource + paceSource + mergeSource + forgetSource + countsSource + atLeastSource + answersSource +
		liveSource + returnSource + titleSource
	var used []string
	for _, match := range placeholder.FindAllStringSubmatch(texts, -1) {
		used = append(used, match[1])
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for _, k := range []Keyspace{Standard, Spread(MinDepth), Spread(MaxDepth)} {
		require.Equal(t, slices.Sorted(maps.Keys(constants(k))), used)
		s := NewScripts(k)
		for _, one := range s.All() {
			require.NotContains(t, one.Source, "${")
		}
	}
	require.Panics(t, func() { complete(Standard, "${NOTHING}") })
}

// The scripts of dense stores are those of every version since changes are restored after a loss, so that servers keep
// one copy while instances are upgraded. The scripts of pacers are those since slots ahead, and answers.lua is that
// since the index by asked users. pace.lua is that since calls of several steps can be ended. return.lua is
// the newest: it is that since returned slots before many bursts are free.
func TestScriptsOfDenseStoresStay(t *testing.T) {
	t.Parallel()
	var sums []string
	s := NewScripts(Standard)
	for _, one := range s.All() {
		sums = append(sums, one.SHA)
	}
	require.Equal(t, []string{
		"a79654106d0960ca8690be879ee4705b48d75c79", "5ee92842524e3d0207378a84a2e3625ef20b9922",
		"5b0df3e68affe578c150bfde9c7631d6399a2c30", "50c8d2b1082e73f6614f09fa343440fe5ed2a2fb",
		"00d391f5af4b1cfd571b329436aad97c9210314f", "2bcec8f8b6dd11c85b10f873dcdf9a360c55c2e1",
		"570f2ae5e96ad7db6e1e876040955c7d8b65b8b3", "9395fb77fa634c2f2ebded90c3a40c1a8fe3b075",
		"7cb28bbbb173094466cfd2d314d35a70eb36d903", "27cb7e785012bb771db734a19ef407b886913c9e",
		"4a6d46efb30d2d0fbe0033b6405bfca497654cfe", "fde724c402d9cc7604b1e3509aebdf03e9b6a823",
		"611ff6a7b0ccbce70720fa71c486f0c050a4e2ca", "001b45c5f07a19b50d304b4d283cd47cb71ba19e",
		"7f43b7af6f79f717dff877b821a4541b9d4fb09b",
	}, sums)
	require.Len(t, Sources(Standard), len(sums))
}

// Scripts of both layouts differ in the lines that read fields, and only four of the scripts read them.
func TestScriptsOfSpreadStores(t *testing.T) {
	t.Parallel()
	dense, spread := NewScripts(Standard), NewScripts(Spread(16))
	differ := 0
	for i, one := range spread.All() {
		lines, others := strings.Split(one.Source, "\n"), strings.Split(dense.All()[i].Source, "\n")
		changed := 0
		for _, line := range lines {
			if !slices.Contains(others, line) {
				changed++
			}
		}
		require.LessOrEqual(t, changed, 9)
		if changed > 0 {
			differ++
		}
	}
	require.Equal(t, 4, differ)
	require.Len(t, Sources(Spread(16)), len(spread.All())+differ, "the texts for both sizes of fields")
}

// The lengths in the texts equal the lengths that the encoder produces.
func TestConstantsAreWhatTheEncoderMakes(t *testing.T) {
	t.Parallel()
	number := func(name string) int {
		n, err := strconv.Atoi(constants(Standard)[name])
		require.NoError(t, err)
		return n
	}
	h := Header{groups: 1}
	token := capping.Token{}
	require.Len(t, h.append(nil), number("FILTER_HEADER"))
	require.Len(t, h.appendUnion(nil), number("UNION_HEADER"))
	require.Len(t, appendRelease(nil, 0, 0, 0, token, 0, false), number("RELEASE_HEADER"))
	require.Len(t, appendStamp(nil, 0, 0), number("STAMP_HEADER"))
	require.Len(t, appendRule(nil, &capping.Rule{Max: 1}), number("RULE"))
	limited := capping.Rule{Max: 1, Channels: capping.ChannelSetOf(1)}
	require.Len(t, appendRule(nil, &limited), number("RULE")+number("CHANNEL_BITS"))
	for name, length := range map[string]string{
		"FILTER_FORMAT": "FILTER_HEADER", "UNION_FORMAT": "UNION_HEADER", "RELEASE_FORMAT": "RELEASE_HEADER",
		"STAMP_FORMAT": "STAMP_HEADER", "RULE_FORMAT": "RULE",
	} {
		require.Equal(t, number(length), bytesOf(t, constants(Standard)[name]), name)
	}

	// A log of one entry, as the domain writes it.
	token = capping.Message{ID: "m"}.Token()
	log := capping.Log(nil).Record(nil, capping.Entry{At: 1, Channel: 200, Token: token}, 0)
	require.Len(t, log, number("ENTRY"))
	require.Equal(t, byte(200), log[number("CHANNEL_AT")])
	require.Equal(t, number("TOKEN_AT"), bytes.Index(log, token[:]))
	require.Equal(t, number("ENTRY"), 3+strings.Count(constants(Standard)["BETWEEN"], "_"))
	require.Equal(t, int64(number("EPOCH")), capping.Instant(0).Time().UnixMilli())

	// A key has no more users than the scripts take.
	var plan Plan
	users := []capping.UserID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	plan.Arrange(Standard, users)
	var a Args
	a.Release(New("x"), Standard, "p", plan.Items, users, Counts{})
	require.Equal(t, []byte{byte(number("KEY_USERS"))}, a.users[:1])
	a.StampRelease(0, time.Second, 0, token, 0)
}

// bytesOf returns how many bytes a format of struct.unpack reads.
func bytesOf(t *testing.T, format string) (n int) {
	rest := format
	for _, match := range regexp.MustCompile(`([>IBc])(\d*)`).FindAllStringSubmatch(format, -1) {
		rest = strings.TrimPrefix(rest, match[0])
		switch size, _ := strconv.Atoi(match[2]); {
		case match[1] == "B":
			n++
		default:
			n += size
		}
	}
	require.Empty(t, rest)
	return n
}
