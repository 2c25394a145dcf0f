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
		liveSource
	var used []string
	for _, match := range placeholder.FindAllStringSubmatch(texts, -1) {
		used = append(used, match[1])
	}
	slices.Sort(used)
	require.Equal(t, slices.Sorted(maps.Keys(constants())), slices.Compact(used))
	s := NewScripts()
	for _, one := range s.All() {
		require.NotContains(t, one.Source, "${")
	}
	require.Panics(t, func() { complete("${NOTHING}") })
}

// The lengths in the texts equal the lengths that the encoder produces.
func TestConstantsAreWhatTheEncoderMakes(t *testing.T) {
	t.Parallel()
	number := func(name string) int {
		n, err := strconv.Atoi(constants()[name])
		require.NoError(t, err)
		return n
	}
	h := Header{groups: 1}
	token := capping.Token{}
	require.Len(t, h.append(nil), number("FILTER_HEADER"))
	require.Len(t, h.appendUnion(nil), number("UNION_HEADER"))
	require.Len(t, appendRelease(nil, 0, 0, 0, token, false), number("RELEASE_HEADER"))
	require.Len(t, appendStamp(nil, 0, 0), number("STAMP_HEADER"))
	require.Len(t, appendRule(nil, &capping.Rule{Max: 1}), number("RULE"))
	limited := capping.Rule{Max: 1, Channels: capping.ChannelSetOf(1)}
	require.Len(t, appendRule(nil, &limited), number("RULE")+number("CHANNEL_BITS"))
	for name, length := range map[string]string{
		"FILTER_FORMAT": "FILTER_HEADER", "UNION_FORMAT": "UNION_HEADER", "RELEASE_FORMAT": "RELEASE_HEADER",
		"STAMP_FORMAT": "STAMP_HEADER", "RULE_FORMAT": "RULE",
	} {
		require.Equal(t, number(length), bytesOf(t, constants()[name]), name)
	}

	// A log of one entry, as the domain writes it.
	token = capping.Message{ID: "m"}.Token()
	log := capping.Log(nil).Record(nil, capping.Entry{At: 1, Channel: 200, Token: token}, 0)
	require.Len(t, log, number("ENTRY"))
	require.Equal(t, byte(200), log[number("CHANNEL_AT")])
	require.Equal(t, number("TOKEN_AT"), bytes.Index(log, token[:]))
	require.Equal(t, number("ENTRY"), 3+strings.Count(constants()["BETWEEN"], "_"))
	require.Equal(t, int64(number("EPOCH")), capping.Instant(0).Time().UnixMilli())

	// A key has no more users than the scripts take.
	var plan Plan
	plan.Arrange(Standard, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	var a Args
	a.Release(New("x"), Standard, "p", plan.Items, Counts{})
	require.Equal(t, []byte{byte(number("KEY_USERS"))}, a.users[:1])
	a.StampRelease(0, time.Second, 0, token)
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
