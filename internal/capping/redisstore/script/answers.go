package script

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The constants from answerCalls to answerConfigs are the kinds of fields in the hash of a message's decision counts.
// The name of a field with a decision count has three parts: the channel's number, the kind, and the name of the
// counted thing (for example a limit).
const (
	answerCalls       = 'c'
	answerAsked       = 'q'
	answerAllowed     = 'a'
	answerReplayed    = 'r'
	answerUnavailable = 'n'
	answerDenied      = 'd' // one field per limit
	answerSuppressed  = 's' // one field per set
	answerShadow      = 'w' // one field per limit
	segmentAsked      = 'x' // one field per segment
	segmentAllowed    = 'y'
	segmentDenied     = 'z'
	answerFirst       = 'f' // an instant
	answerLast        = 'l'
	answerConfigs     = 'v' // configuration versions, one on each line
)

// FlushSize, flushes, answerFields and mostConfigs limit the size of the hash that holds a message's decision counts.
const (
	// FlushSize is the size in bytes of the name of a flush (one addition to a message's decision counts).
	FlushSize    = 8
	flushes      = 8    // latest flushes whose names the hash keeps
	answerFields = 4096 // with this number of fields, the script creates no field for another name
	mostConfigs  = 100
)

// AnswerKeys holds the Redis keys that a call needs to change a message's decision counts. All keys in an AnswerKeys
// are in one partition.
type AnswerKeys struct{ Answers, Index, Message, Sizes string }

// The method Answers encodes the call of answers.lua that adds the numbers in a Delta to a message's decision counts.
// The argument "flush" of Answers is a random name by which the script recognizes a repeated addition. The argument
// "keep" of Answers is the TTL of the counts. If the argument "begins" is true, answers.lua also begins to count a
// message without stored data.
func (a *Args) Answers(s *Script, keys AnswerKeys, d *messages.Delta, flush [FlushSize]byte, keep time.Duration,
	begins bool) {
	a.begin(s)
	for _, key := range []string{keys.Answers, keys.Index, keys.Message, keys.Sizes} {
		a.buf = append(a.buf, key...)
		a.endKey()
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	counted, first, channel := "", []byte(nil), number(int64(d.Channel))
	if begins {
		counted = "1"
	}
	if d.Calls > 0 {
		first = number(int64(d.First))
	}
	var configs []byte
	for _, version := range d.Configs {
		configs = append(append(configs, version...), '\n')
	}
	rest := [][]byte{number(keep.Milliseconds()), flush[:], []byte(d.Message.Text()), channel, []byte(counted), first,
		number(int64(d.Last)), configs}
	eachAnswer(&d.Answers, func(kind byte, name string, n int64) {
		if n != 0 {
			rest = append(rest, append(append(slices.Clone(channel), kind), name...), number(n))
		}
	})
	a.finish(4, rest...)
}

// titleField is the name of the field with the title in the hash of a message's decision counts. The name of the field
// with the title contains no channel.
const titleField = "t"

// The method Title encodes the call of title.lua, which stores the title of a message. The argument "keep" of Title is
// the TTL of the title while the message has no decision counts. If the argument "begins" is true, title.lua also gives
// a title to a message without stored data.
func (a *Args) Title(s *Script, keys AnswerKeys, message capping.Message, title string, keep time.Duration,
	begins bool) {
	a.begin(s)
	for _, key := range []string{keys.Answers, keys.Message} {
		a.buf = append(a.buf, key...)
		a.endKey()
	}
	may := "0"
	if begins {
		may = "1"
	}
	a.finish(2, strconv.AppendInt(nil, keep.Milliseconds(), 10), []byte(message.Text()), []byte(title), []byte(may))
}

// TitleOf returns the command that reads the title of a message from the hash of its decision counts.
func TitleOf(answers string) []string { return []string{"hget", answers, titleField} }

// DecodeTitle returns a message's title from the reply of HGETALL, or "" if the message has no title.
func DecodeTitle(fields []string) string {
	for ; len(fields) > 1; fields = fields[2:] {
		if fields[0] == titleField {
			return fields[1]
		}
	}
	return ""
}

// eachAnswer calls the function "what" once for every decision count of a message, even if the count is zero.
func eachAnswer(a *messages.Answers, what func(kind byte, name string, n int64)) {
	what(answerCalls, "", a.Calls)
	what(answerAsked, "", a.Asked)
	what(answerAllowed, "", a.Allowed)
	what(answerReplayed, "", a.Replayed)
	what(answerUnavailable, "", a.Unavailable)
	for kind, counts := range map[byte]map[string]int64{answerDenied: a.Denied, answerSuppressed: a.Suppressed,
		answerShadow: a.Shadow} {
		for name, n := range counts {
			what(kind, name, n)
		}
	}
	for name, segment := range a.Segments {
		what(segmentAsked, name, segment.Asked)
		what(segmentAllowed, name, segment.Allowed)
		what(segmentDenied, name, segment.Denied)
	}
}

// DecodeAnswers decodes the reply of HGETALL, and returns a message's decision counts by channel.
func DecodeAnswers(fields []string) (map[capping.Channel]*messages.Answers, error) {
	if len(fields)%2 != 0 {
		return nil, ErrReply
	}
	found := map[capping.Channel]*messages.Answers{}
	for ; len(fields) > 0; fields = fields[2:] {
		digits := strings.IndexFunc(fields[0], func(r rune) bool { return r < '0' || r > '9' })
		if digits <= 0 {
			continue // a field of the message and not of a channel
		}
		channel, err := strconv.ParseUint(fields[0][:digits], 10, 8)
		if err != nil {
			return nil, ErrReply
		}
		of := found[capping.Channel(channel)]
		if of == nil {
			of = &messages.Answers{}
			found[capping.Channel(channel)] = of
		}
		if err := setAnswer(of, fields[0][digits], fields[0][digits+1:], fields[1]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// setAnswer stores the decision count of one hash field in the argument a. The function setAnswer ignores kinds of
// fields that later versions of capper added.
func setAnswer(a *messages.Answers, kind byte, name, value string) error {
	if kind == answerConfigs {
		a.Configs = slices.Collect(strings.Lines(value))
		for i, line := range a.Configs {
			a.Configs[i] = strings.TrimSuffix(line, "\n")
		}
		return nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return ErrReply
	}
	switch kind {
	case answerFirst:
		a.First = capping.Instant(n)
	case answerLast:
		a.Last = capping.Instant(n)
	default:
		setCount(a, kind, name, n)
	}
	return nil
}

func setCount(a *messages.Answers, kind byte, name string, n int64) {
	named := map[string]int64{name: n}
	switch kind {
	case answerCalls:
		a.Calls = n
	case answerAsked:
		a.Asked = n
	case answerAllowed:
		a.Allowed = n
	case answerReplayed:
		a.Replayed = n
	case answerUnavailable:
		a.Unavailable = n
	case answerDenied:
		a.Add(&messages.Answers{Denied: named})
	case answerSuppressed:
		a.Add(&messages.Answers{Suppressed: named})
	case answerShadow:
		a.Add(&messages.Answers{Shadow: named})
	case segmentAsked:
		a.Add(&messages.Answers{Segments: map[string]messages.SegmentAnswers{name: {Asked: n}}})
	case segmentAllowed:
		a.Add(&messages.Answers{Segments: map[string]messages.SegmentAnswers{name: {Allowed: n}}})
	case segmentDenied:
		a.Add(&messages.Answers{Segments: map[string]messages.SegmentAnswers{name: {Denied: n}}})
	}
}
