package answer

import (
	"encoding/json"
	"strconv"

	"capper/internal/capping"
	"capper/internal/server/decode"
)

// answer writes the response of a filter call by appending: no reflection, no
// value per user.
type answer struct {
	out     []byte
	scratch []byte // of bitmaps
	users   []capping.UserID
	d       *capping.Decisions
	s       *Summary
	r       *decode.FilterRequest
}

// Filter appends the answer of a filter call to dst.
func Filter(dst []byte, r *decode.FilterRequest, d *capping.Decisions, s *Summary) []byte {
	a := &answer{out: dst, d: d, s: s, r: r}
	a.raw(`{`)
	if r.Bitmap {
		a.bitmaps()
	} else {
		a.lists()
	}
	if r.Waves {
		a.waves()
	}
	a.summary()
	a.raw(`,"generation":`).text(d.Generation)
	a.raw(`,"config_version":`).text(d.Policy.Version)
	a.raw("}\n")
	return a.out
}

func (a *answer) raw(s string) *answer {
	a.out = append(a.out, s...)
	return a
}

func (a *answer) number(n int) *answer {
	a.out = strconv.AppendInt(a.out, int64(n), 10)
	return a
}

func (a *answer) text(s string) *answer {
	a.out = appendText(a.out, s)
	return a
}

// appendText appends s as a JSON string.
func appendText(dst []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // a string always encodes
		quoted = []byte(`""`)
	}
	return append(dst, quoted...)
}

func isAllowed(o capping.Outcome) bool     { return o == capping.Allowed || o == capping.Replayed }
func isReplayed(o capping.Outcome) bool    { return o == capping.Replayed }
func isUnavailable(o capping.Outcome) bool { return o == capping.Unavailable }

// lists writes the decisions of a request with user_ids.
func (a *answer) lists() {
	a.raw(`"allowed":`).list(a.pick(a.s.Allowed, isAllowed))
	a.raw(`,"replayed":`).list(a.pick(a.s.Replayed, isReplayed))
	if !a.r.Counts {
		a.raw(`,"denied":[`).denials()
		a.raw(`]`)
	}
	a.raw(`,"unavailable":`).list(a.pick(a.s.Unavailable, isUnavailable))
}

// bitmaps writes the decisions of a request with users_bitmap.
func (a *answer) bitmaps() {
	a.raw(`"allowed_bitmap":`).bitmap(a.pick(a.s.Allowed, isAllowed))
	a.raw(`,"replayed_bitmap":`).bitmap(a.pick(a.s.Replayed, isReplayed))
	if !a.r.Counts {
		a.raw(`,"denied_bitmaps":{`).deniedBitmaps()
		a.raw(`}`)
	}
	a.raw(`,"unavailable_bitmap":`).bitmap(a.pick(a.s.Unavailable, isUnavailable))
}

// pick is the n users with a matching outcome, in the order of the request.
// The next call overwrites it.
func (a *answer) pick(n int, match func(capping.Outcome) bool) []capping.UserID {
	if n == len(a.d.Users) {
		return a.d.Users
	}
	a.users = a.users[:0]
	if n == 0 {
		return a.users
	}
	for i, v := range a.d.Verdicts {
		if match(v.Outcome) {
			a.users = append(a.users, a.d.Users[i])
		}
	}
	return a.users
}

func (a *answer) list(users []capping.UserID) *answer {
	a.out = append(a.out, '[')
	a.out = appendIDs(a.out, users)
	a.out = append(a.out, ']')
	return a
}

func appendIDs(dst []byte, users []capping.UserID) []byte {
	for i, user := range users {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(user), 10)
	}
	return dst
}

func (a *answer) bitmap(users []capping.UserID) *answer {
	a.out, a.scratch = appendBase64Bitmap(a.out, a.scratch, users)
	return a
}

// denials writes each denied user. What is the same for all users of a limit
// and segment is made once.
func (a *answer) denials() {
	texts := make([][]string, len(a.d.Names)+1)
	var instants instantWriter
	first := true
	for i, v := range a.d.Verdicts {
		if v.Outcome != capping.Denied {
			continue
		}
		if !first {
			a.out = append(a.out, ',')
		}
		first = false
		a.out = append(a.out, `{"user_id":`...)
		a.out = strconv.AppendUint(a.out, uint64(a.d.Users[i]), 10)
		a.out = append(a.out, a.denialText(texts, i)...)
		a.out = instants.append(a.out, v.FreesAt)
		a.out = append(a.out, '}')
	}
}

func (a *answer) denialText(texts [][]string, i int) string {
	code, rule := a.d.Codes[i], int(a.d.Verdicts[i].Rule)
	for rule >= len(texts[code]) {
		texts[code] = append(texts[code], "")
	}
	if texts[code][rule] == "" {
		limit := a.d.Limit(i)
		text := appendText([]byte(`,"segment":`), SegmentName(a.d.Segment(i)))
		text = appendText(append(text, `,"limit":`...), limit.Name)
		text = strconv.AppendInt(append(text, `,"max":`...), int64(limit.Max), 10)
		texts[code][rule] = string(append(text, `,"retry_at":`...))
	}
	return texts[code][rule]
}

// deniedBitmaps writes the denied users by the name of their limit.
func (a *answer) deniedBitmaps() {
	lists := map[string]*[]capping.UserID{}
	for _, limit := range a.s.byLimit() {
		users := make([]capping.UserID, 0, limit.users)
		lists[limit.name] = &users
	}
	byRule := make([][]*[]capping.UserID, len(a.s.denials)) // the list of each segment code and rule
	for code, rows := range a.s.denials {
		byRule[code] = make([]*[]capping.UserID, len(rows))
		for rule, row := range rows {
			if row.limit != nil {
				byRule[code][rule] = lists[row.limit.Name]
			}
		}
	}
	for i, v := range a.d.Verdicts {
		if v.Outcome == capping.Denied {
			users := byRule[a.d.Codes[i]][v.Rule]
			*users = append(*users, a.d.Users[i])
		}
	}
	for i, limit := range a.s.byLimit() {
		if i > 0 {
			a.raw(`,`)
		}
		a.text(limit.name).raw(`:`).bitmap(*lists[limit.name])
	}
}

func (a *answer) summary() {
	s := a.s
	a.raw(`,"summary":{"requested":`).number(s.Requested + a.r.Duplicates)
	a.raw(`,"allowed":`).number(s.Allowed)
	a.raw(`,"denied":{`)
	for i, c := range s.byLimit() {
		if i > 0 {
			a.raw(`,`)
		}
		a.text(c.name).raw(`:`).number(c.users)
	}
	a.raw(`},"unavailable":`).number(s.Unavailable)
	a.raw(`,"duplicates":`).number(a.r.Duplicates)
	a.raw(`,"replayed":`).number(s.Replayed)
	a.raw(`,"segments":{`)
	for i, c := range s.bySegment(a.d.Names) {
		if i > 0 {
			a.raw(`,`)
		}
		a.text(c.name).raw(`:{"requested":`).number(c.Requested).raw(`,"allowed":`).number(c.Allowed).raw(`}`)
	}
	a.raw(`}}`)
}

// instantWriter writes instants, and remembers the day of the last one: a day's
// date is the dear part.
type instantWriter struct {
	day  int64 // since the instant 0, plus 1; 0: none yet
	date [len("2006-01-02T")]byte
}

const millisPerDay = 24 * 60 * 60 * 1000

// append appends an instant as a JSON string; Never, the instant of what no
// waiting helps, is null.
func (c *instantWriter) append(dst []byte, at capping.Instant) []byte {
	if at >= capping.Never {
		return append(dst, "null"...)
	}
	if day := int64(at)/millisPerDay + 1; day != c.day {
		c.day = day
		copy(c.date[:], at.Time().Format("2006-01-02T"))
	}
	ms := int(int64(at) % millisPerDay)
	dst = append(dst, '"')
	dst = append(dst, c.date[:]...)
	dst = append(appendTwo(dst, ms/3600000), ':')
	dst = append(appendTwo(dst, ms/60000%60), ':')
	dst = append(appendTwo(dst, ms/1000%60), '.')
	dst = append(dst, byte('0'+ms/100%10))
	dst = appendTwo(dst, ms%100)
	return append(dst, 'Z', '"')
}

func appendTwo(dst []byte, n int) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}
