package wire

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// The type answer encodes an HTTP response into a buffer, without reflection and without allocating a value for each
// user.
type answer struct {
	out     []byte
	scratch []byte // buffer for bitmaps
	users   []capping.UserID
	d       *capping.Decisions
	s       *Summary
	r       *FilterRequest
	given   *Given           // ids of the request; nil: dense ids as numbers
	form    Form             // InPacked: the argument of bitmap lists positions of packed ids
	of      []capping.UserID // content of bitmaps and lists, for each user: the user, or the position of a packed id
}

// EncodeFilter appends the response of a filter call to dst.
func EncodeFilter(dst []byte, r *FilterRequest, d *capping.Decisions, s *Summary) []byte {
	a := &answer{out: dst, d: d, s: s, r: r, given: r.Given, of: r.named(d.Users), form: r.Form}
	a.raw(`{`)
	if r.Form == InLists {
		a.lists()
	} else {
		a.bitmaps()
	}
	if r.Waves {
		a.waves()
	}
	a.taken(&r.Audience)
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
	if err != nil { // encoding a string never fails
		quoted = []byte(`""`)
	}
	return append(dst, quoted...)
}

func isAllowed(o capping.Outcome) bool     { return o == capping.Allowed || o == capping.Replayed }
func isReplayed(o capping.Outcome) bool    { return o == capping.Replayed }
func isUnavailable(o capping.Outcome) bool { return o == capping.Unavailable }

// The method "lists" writes the decisions about the users of a request that listed ids in the field "user_ids".
func (a *answer) lists() {
	a.raw(`"allowed":`).listed(a.s.Allowed, isAllowed)
	a.raw(`,"replayed":`).listed(a.s.Replayed, isReplayed)
	if !a.r.Counts {
		a.raw(`,"denied":`).denials()
	}
	a.raw(`,"unavailable":`).listed(a.s.Unavailable, isUnavailable)
}

// The method "listed" writes the ids of the n users for whose outcome the function "match" returns true, in the order
// of the request.
func (a *answer) listed(n int, match func(capping.Outcome) bool) *answer {
	if a.given == nil {
		return a.list(a.pick(n, match))
	}
	if n == 0 {
		return a.raw(`[]`)
	}
	out, begin := a.out, len(a.out)
	for i := range a.d.Verdicts {
		if match(a.d.Verdicts[i].Outcome) {
			out = a.given.append(append(out, ','), i, a.d.Users[i])
		}
	}
	out[begin] = '['
	a.out = append(out, ']')
	return a
}

// The method "names" writes the ids of the users at the given positions of the request.
func (a *answer) names(places []int, users []capping.UserID) *answer {
	a.raw(`[`)
	for n, i := range places {
		if n > 0 {
			a.out = append(a.out, ',')
		}
		a.out = a.given.append(a.out, i, users[i])
	}
	return a.raw(`]`)
}

// The method "bitmaps" writes the decisions about the users of a request with the field "users_bitmap", "users_packed"
// or "audience".
func (a *answer) bitmaps() {
	one, many := a.form.names()
	a.raw(`"allowed_`).raw(one).raw(`":`).bitmap(a.pick(a.s.Allowed, isAllowed))
	a.raw(`,"replayed_`).raw(one).raw(`":`).bitmap(a.pick(a.s.Replayed, isReplayed))
	if !a.r.Counts {
		a.raw(`,"denied_`).raw(many).raw(`":{`).deniedBitmaps()
		a.raw(`}`)
	}
	a.raw(`,"unavailable_`).raw(one).raw(`":`).bitmap(a.pick(a.s.Unavailable, isUnavailable))
}

// pick() returns the n users for whose outcome the function "match" returns true, in the order of the request. The next
// call of pick() overwrites the returned slice.
func (a *answer) pick(n int, match func(capping.Outcome) bool) []capping.UserID {
	if n == len(a.of) {
		return a.of
	}
	a.users = a.users[:0]
	if n == 0 {
		return a.users
	}
	for i, v := range a.d.Verdicts {
		if match(v.Outcome) {
			a.users = append(a.users, a.of[i])
		}
	}
	return a.users
}

func (a *answer) list(users []capping.UserID) *answer { return list(a, users) }

func list[ID ~uint32 | ~uint64](a *answer, ids []ID) *answer {
	a.out = append(a.out, '[')
	a.out = appendIDs(a.out, ids)
	a.out = append(a.out, ']')
	return a
}

func appendIDs[ID ~uint32 | ~uint64](dst []byte, users []ID) []byte {
	for i, user := range users {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(user), 10)
	}
	return dst
}

func (a *answer) bitmap(users []capping.UserID) *answer { return base64Bitmap(a, users) }

func base64Bitmap[ID ~uint32 | ~uint64](a *answer, users []ID) *answer {
	if a.form == InPacked {
		a.out, a.scratch = appendPacked(a.out, a.scratch, a.given, users)
	} else {
		a.out, a.scratch = appendBase64Bitmap(a.out, a.scratch, users)
	}
	return a
}

// deniedBitmaps writes, for each rule that denied users, a bitmap of these users.
func (a *answer) deniedBitmaps() {
	lists := map[string]*[]uint32{}
	for _, limit := range a.s.byLimit() {
		users := make([]uint32, 0, limit.users)
		lists[limit.name] = &users
	}
	var byRule [reasons][][]*[]uint32 // list for each reason, segment code and rule
	for code := range a.s.denials {
		for by, rows := range a.s.denials[code] {
			found := make([]*[]uint32, len(rows))
			for rule := range rows {
				found[rule] = lists[rows[rule].limit]
			}
			byRule[by] = append(byRule[by], found)
		}
	}
	for i := range a.d.Verdicts {
		if v := &a.d.Verdicts[i]; v.Outcome == capping.Denied {
			users := byRule[v.By][a.d.Codes[i]][v.Rule]
			*users = append(*users, capping.Dense(a.of[i]))
		}
	}
	for i, limit := range a.s.byLimit() {
		if i > 0 {
			a.raw(`,`)
		}
		base64Bitmap(a.text(limit.name).raw(`:`), *lists[limit.name])
	}
}

func (a *answer) summary() {
	s := a.s
	a.raw(`,"summary":{"requested":`).number(s.Requested + a.r.Duplicates)
	a.raw(`,"allowed":`).number(s.Allowed)
	a.raw(`,"denied":`).counts(s.byLimit())
	a.raw(`,"unavailable":`).number(s.Unavailable)
	a.raw(`,"duplicates":`).number(a.r.Duplicates)
	a.raw(`,"replayed":`).number(s.Replayed)
	a.raw(`,"segments":{`)
	for i, c := range s.bySegment(a.d.Names) {
		if i > 0 {
			a.raw(`,`)
		}
		a.text(c.name).raw(`:{"requested":`).number(c.Requested).raw(`,"allowed":`).number(c.Allowed).raw(`}`)
	}
	a.raw(`}`)
	if sets := s.bySet(); len(sets) > 0 {
		a.raw(`,"suppressed":`).counts(sets)
	}
	if limits := s.byShadow(); len(limits) > 0 {
		a.raw(`,"shadow_denied":`).counts(limits)
	}
	a.raw(`}`)
}

// The method "counts" writes a JSON object that maps names to numbers of users.
func (a *answer) counts(counts []count) *answer {
	a.raw(`{`)
	for i, c := range counts {
		if i > 0 {
			a.raw(`,`)
		}
		a.text(c.name).raw(`:`).number(c.users)
	}
	return a.raw(`}`)
}

// instantWriter encodes times as JSON strings. The type instantWriter caches the text of the last date, because
// formatting a date takes most of the time.
type instantWriter struct {
	day  int64 // days since the instant 0, plus 1; 0: no date cached
	text [len(`"2006-01-02T15:04:05.000Z"`)]byte
}

const millisPerDay = 24 * 60 * 60 * 1000

// twoDigits returns the two decimal digits of a number from 0 to 99, with the first digit in the low byte.
var twoDigits = func() (digits [100]uint16) {
	for n := range digits {
		digits[n] = uint16('0'+n/10) | uint16('0'+n%10)<<8
	}
	return digits
}()

// The method append appends a time as a JSON string. For the time capping.Never, the method appends null, which tells
// the caller that waiting does not help.
func (c *instantWriter) append(dst []byte, at capping.Instant) []byte {
	if at >= capping.Never {
		return append(dst, "null"...)
	}
	at = max(at, 0)
	if day := int64(at)/millisPerDay + 1; day != c.day {
		c.day = day
		copy(c.text[:], at.Time().Format(`"2006-01-02T15:04:05.000Z"`))
	}
	ms := uint32(int64(at) % millisPerDay)
	seconds := ms / 1000
	minutes := seconds / 60
	hours := minutes / 60
	ms, seconds, minutes = ms%1000, seconds%60, minutes%60
	binary.LittleEndian.PutUint16(c.text[12:], twoDigits[hours])
	binary.LittleEndian.PutUint16(c.text[15:], twoDigits[minutes])
	binary.LittleEndian.PutUint16(c.text[18:], twoDigits[seconds])
	c.text[21] = byte('0' + ms/100)
	binary.LittleEndian.PutUint16(c.text[22:], twoDigits[ms%100])
	return append(dst, c.text[:]...)
}

// appendBase64Bitmap appends a roaring bitmap of the users, in base64, as a JSON string. The caller of
// appendBase64Bitmap must pass the users in ascending order. The function appendBase64Bitmap overwrites the buffer
// "scratch", and returns it as scratchOut for the next call.
func appendBase64Bitmap[ID ~uint32 | ~uint64](dst, scratch []byte, users []ID) (extended, scratchOut []byte) {
	scratch = bitmap.AppendSorted(scratch[:0], users)
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, scratch)
	return append(dst, '"'), scratch
}
