package script

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/pacing"
)

// The constant "work" limits the length of a script call. After a script call has read so many bytes of logs, it ends,
// and leaves the remaining users to another call. The constant "scan" is the cost of checking each entry of a log, as a
// multiple of the cost of reading the log.
const (
	work = 200_000
	scan = 4
)

// rulePlaces is the number of elements that one rule takes in a Lua table of filter.lua.
const rulePlaces = 5

// The function "constants" returns the values for the placeholders ${NAME} in the texts of the Lua scripts, for one
// keyspace (distribution of users over Redis keys). Offsets within a log entry count from the first byte of the entry,
// which has the offset 0.
func constants(k Keyspace) map[string]string {
	numbers := map[string]int64{
		"ENTRY": capping.EntrySize, "INSTANT": instantSize, "CHANNEL_AT": instantSize, "TOKEN_AT": instantSize + 1,
		"LOG_BOUND": capping.LogBound, "WORK": work, "SCAN": scan, "PLACES": rulePlaces,
		"EPOCH": capping.EpochUnixMillis, "NEVER": int64(capping.Never), "LONGEST_LIFE": longestLife.Milliseconds(),
		"KEY_USERS": keyUsers, "RULE": ruleSize, "CHANNEL_BITS": int64(channelBits),
		"LIVE_PAGE": livePage,
		"SHADOWS":   capping.MaxShadow, "SHADOW": shadowSize, "DENIED": 'D',
		"FILTER_HEADER": int64(filterHeaderSize), "UNION_HEADER": int64(unionHeaderSize), "TOKEN": int64(tokenSize),
		"RELEASE_HEADER": int64(releaseHeaderSize), "STAMP_HEADER": stampSize,

		"COUNT": int64(modeCount), "COUNT_BITS": countBits,
		"COUNT_SLACK": countSlack, "PERIOD": periodLength,
		"FLUSH": FlushSize, "FLUSHES": flushes, "CONFIGS": mostConfigs,
		"ANSWER_FIELDS": answerFields,
		"COUNT_LEAST":   messages.MinKeep.Milliseconds(), "COUNT_MOST": messages.MaxKeep.Milliseconds(),

		"PACE_HEADER": paceHeaderSize, "RUN": pacing.RunSize, "TRAILER": trailerSize, "FIXED": trailerSize - fixedAt,
		"LIMITS": limitCount, "REQUEST": requestSize,
		"UNTIL_AT": untilAt, "LOG_FORMAT": logFormat, "TAIL": tailBytes, "SHORT_1": int64(shortBytes + cursorSize),
		"SHORT_2": int64(shortBytes + 2*cursorSize), "CHUNK": chunkRuns,
		"CURSOR": int64(cursorSize), "COPIED": copiedRuns, "NO_COPIES": noCopies, "COPIES": copiedRuns * pacing.RunSize,
		"AHEAD_FORMAT": aheadFormat, "STRAND": pacing.StrandSize, "MOST_AHEAD": pacing.MostAhead, "NO_SLOT": 1 << 53,
		"MOST_RETURNED": pacing.MostReturned, "MOST_WORK": pacing.MostWork,
		"MOST_LOOKS": pacing.MostLooks, "MOST_WINDOWS": pacing.MostWindows, "ALIGN_SHARE": pacing.AlignShare,
		"LOOK": lookRuns, "HISTORY": keptRuns, "FULL": fullRuns, "PACE_WORK": paceWork,
		"REMEMBERED": pacing.RememberedHeader, "MOST_EVERY": pacing.MostEvery, "MOST_BURST": pacing.MostBurst,
		"MOST_PERMITS": pacing.MaxPermits, "MOST_TARGETS": pacing.MaxPacers,
		"LONGEST_WAIT": pacing.MaxWait.Microseconds(),

		"RETURN_HEADER": returnHeaderSize, "MOST_MEETS": pacing.MostMeets, "MOST_COMMON": pacing.MostCommon,
		"MOST_LINE": pacing.MostLine, "MOST_APART": pacing.MostApart, "MOST_ODD": pacing.MostOdd,
	}
	texts := map[string]string{
		"FILTER_FORMAT": filterFormat, "RULE_FORMAT": ruleFormat, "UNION_FORMAT": unionFormat,
		"RELEASE_FORMAT": releaseFormat, "STAMP_FORMAT": stampFormat,
		"PACE_FORMAT": paceFormat, "PACE_ONE_FORMAT": paceOneFormat, "REQUEST_FORMAT": requestFormat,
		"RUN_FORMAT": runFormat, "RUN_INTS": runFormat[1:],
		"TRAILER_FORMAT": trailerFormat, "TRAILER_INTS": trailerFormat[1:], "COUNTS": fmt.Sprintf("I%dI%d", totalSize,
			lengthSize), "CURSOR_FORMAT": cursorFormat,
		"STRAND_FORMAT": strandFormat, "RETURN_FORMAT": returnFormat,
		"COUNT_SENDS": countsSource, "AT_LEAST": atLeastField,
		// BETWEEN has one name for each byte between the upper three bytes of a log entry and the upper three bytes of
		// the next entry.
		"BETWEEN": strings.Repeat("_, ", capping.EntrySize-4) + "_",
	}
	for name, n := range numbers {
		texts[name] = strconv.FormatInt(n, 10)
	}
	maps.Copy(texts, k.fieldTexts())
	return texts
}

// fieldTexts returns pieces of script text that read the hash fields of users, and therefore depend on the keyspace
// (distribution of users over Redis keys).
func (k Keyspace) fieldTexts() map[string]string {
	if k.IsSpread() {
		return spreadTexts(k.fieldSize())
	}
	return map[string]string{
		"FIELD_NOTE": "1: its number", "FIELDS_SIZE": "count", "GROUPED_SIZE": "2 * count",
		"FIELDS": "{byte(users, p + 1, p + count)}",
		"FIELD_NAMES": "-- names maps numbers to field names. Constants need no new string for each user. " +
			"A call of few users is faster without\n-- the table.\n" +
			"local names = #users > 12 and {[0] = " + fieldNames(int(k.BucketSize)) + "}",
		"NAME_FIELDS": "  for i = 1, count do fields[i] = names and names[fields[i]] or tostring(fields[i]) end",
		"TEXT_FIELDS": "  for i = 1, count do fields[i] = tostring(fields[i]) end",
		"MERGED_USER": strconv.Itoa(1 + entriesSize), "MERGED_FIELD": "tostring(byte(users, p + 4 * i - 3))",
		"NO_FIELD": "#ARGV[1] < 1 or #ARGV[1] > 3",
	}
}

// spreadTexts returns pieces of script text for spread keyspaces (ids that are not dense). The argument "size" of
// spreadTexts is the size of the scripts' hash fields in bytes. In a spread keyspace (store whose ids are not dense),
// the scripts get a hash field in its stored form.
func spreadTexts(size int) map[string]string {
	all := strings.Repeat(fmt.Sprint("c", size), keyUsers)
	user := size + entriesSize
	return map[string]string{
		"FIELD_NOTE":  fmt.Sprint(size, ": its name"),
		"FIELDS_SIZE": fmt.Sprint(size, " * count"), "GROUPED_SIZE": fmt.Sprint(size+1, " * count"),
		"FIELDS":      fmt.Sprintf("{struct.unpack(sub('%s', 1, 2 * count), users, p + 1)}", all),
		"FIELD_NAMES": "", "NAME_FIELDS": "", "TEXT_FIELDS": "",
		"MERGED_USER":  strconv.Itoa(user),
		"MERGED_FIELD": fmt.Sprintf("sub(users, p + %d * i - %d, p + %d * i - %d)", user, user-1, user, entriesSize),
		"NO_FIELD":     fmt.Sprint("#ARGV[1] ~= ", size),
	}
}

// fieldNames returns the names "0", "1" and so on, up to the number n-1, as the text of a Lua table.
func fieldNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = "'" + strconv.Itoa(i) + "'"
	}
	return strings.Join(names, ",")
}

var placeholder = regexp.MustCompile(`\$\{(\w*)\}`)

// The function "complete" replaces the placeholders ${NAME} in the text of a Lua script by the values for the keyspace
// (distribution of users over Redis keys). The function "complete" panics if a placeholder has an unknown name.
func complete(k Keyspace, source string) string {
	known := constants(k)
	source = strings.ReplaceAll(source, "${COUNT_SENDS}", known["COUNT_SENDS"]) // this text contains further constants
	return placeholder.ReplaceAllStringFunc(source, func(name string) string {
		text, ok := known[name[2:len(name)-1]]
		if !ok {
			panic(fmt.Sprintf("script: no constant %s", name)) // a wrong name in our script: the first test finds it
		}
		return text
	})
}
