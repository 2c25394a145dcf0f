package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/segments"
)

// The type Given holds the original ids of the users in a request, because the response contains these ids. An id image
// (64-bit keyed hash of an id) cannot be converted back to its id, so the request keeps both the id image and the id. A
// nil *Given means that the request had dense ids (32-bit numbers) as JSON numbers; the ids then equal the users.
type Given struct {
	scheme *ids.Scheme
	// For ids of the kinds uuid and uint64, packed holds the ids as bytes of fixed width. For ids of the kind text,
	// packed holds the texts one after another. For dense ids, packed is empty, because the ids equal the users.
	packed []byte
	ends   []uint32 // for text: the end of each id in packed
	images bool     // the request listed id images; scheme is then the scheme of dense ids
	quoted bool     // dense, uint64: an id came as a string, or is too large for numbers in JavaScript
}

// maxNumber is the largest id that a response contains as a JSON number. If a larger id were a JSON number, clients
// that parse numbers as floating-point numbers would round the id.
const maxNumber = 1 << 53

// givenOf returns the ids of users. The argument "numbers" lists the users by their numbers in a segments generation
// (published version). The snapshot s of the segments generation must contain the ids of its users.
func givenOf(s *segments.Snapshot, numbers []uint32) (g *Given, err error) {
	g = &Given{scheme: s.IDs(), quoted: true}
	if g.scheme.Kind() == ids.Text {
		g.packed = make([]byte, 0, s.TextBytes(numbers))
		g.packed, g.ends = s.BackTexts(g.packed, make([]uint32, 0, len(numbers)), numbers)
		return g, nil
	}
	g.packed, err = s.BackPacked(make([]byte, 0, g.scheme.Width()*len(numbers)), numbers)
	if err != nil {
		return nil, fmt.Errorf("read the user ids of generation (published version) %s: %w", s.Generation(), err)
	}
	return g, nil
}

// textBytes is the number of bytes that estimates of memory assume for a text id.
const textBytes = 64

// NameBytes returns the approximate size in bytes of one user id in JSON, including a comma. If the scheme of the ids
// is nil, the ids are dense (32-bit numbers).
func NameBytes(scheme *ids.Scheme) int64 {
	switch {
	case scheme == nil:
		return int64(len("4294967295,"))
	case scheme.Kind() == ids.Text:
		return textBytes + int64(len(`"",`))
	}
	return int64((&Given{scheme: scheme}).bytesOf(1))
}

// givenSize returns the size in bytes of the result of givenOf.
func givenSize(s *segments.Snapshot, numbers []uint32) int64 {
	if s.IDs().Kind() == ids.Text {
		return s.TextBytes(numbers) + 4*int64(len(numbers))
	}
	return int64(s.IDs().Width() * len(numbers))
}

// size() returns the memory of the ids in bytes. For a nil *Given, size() returns 0.
func (g *Given) size() int64 {
	if g == nil {
		return 0
	}
	return int64(len(g.packed) + 4*len(g.ends))
}

// bytesOf returns the size in bytes of one user id in JSON, including a comma. If the ids are texts, bytesOf returns
// the average over the given number of users.
func (g *Given) bytesOf(users int) int {
	switch g.scheme.Kind() {
	case ids.UUID:
		return len(`"018f3c4e-7a1b-7c3d-9e5f-0123456789ab",`)
	case ids.Text:
		escapes := bytes.Count(g.packed, []byte(`"`)) + bytes.Count(g.packed, []byte(`\`))
		return len(`"",`) + 1 + (len(g.packed)+escapes)/max(users, 1)
	}
	if g.images {
		return len(`"image:5f1c0b7e22a94d31",`)
	}
	return len(`"18446744073709551615",`)
}

// The method append appends the id of the user with the index i to dst, as a JSON value.
func (g *Given) append(dst []byte, i int, user capping.UserID) []byte {
	if g.images {
		return fmt.Appendf(dst, `"image:%016x"`, uint64(user))
	}
	switch g.scheme.Kind() {
	case ids.UUID:
		dst = g.scheme.Unpack(append(dst, '"'), g.packed[16*i:16*i+16])
		return append(dst, '"')
	case ids.Text:
		return appendTextID(dst, g.text(i))
	case ids.Uint64:
		if !g.quoted {
			return g.scheme.Unpack(dst, g.packed[8*i:8*i+8])
		}
		dst = g.scheme.Unpack(append(dst, '"'), g.packed[8*i:8*i+8])
		return append(dst, '"')
	}
	dst = strconv.AppendUint(append(dst, '"'), uint64(user), 10)
	return append(dst, '"')
}

// The method text returns the id of the user with the index i, if the ids are texts.
func (g *Given) text(i int) []byte {
	begin := uint32(0)
	if i > 0 {
		begin = g.ends[i-1]
	}
	return g.packed[begin:g.ends[i]]
}

// appendTextID appends a text id as a JSON string. A text id is valid UTF-8 without control characters.
func appendTextID(dst, id []byte) []byte {
	dst = append(dst, '"')
	for _, c := range id {
		if c == '"' || c == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// appendPacked appends the packed ids of the users at the given positions, in base64, as a JSON string. The function
// appendPacked overwrites the buffer "scratch", and returns it as scratchOut for the next call.
func appendPacked[Place ~uint32 | ~uint64](dst, scratch []byte, g *Given, places []Place) (extended,
	scratchOut []byte) {
	width := g.scheme.Width()
	scratch = slices.Grow(scratch[:0], width*len(places))
	for _, i := range places {
		scratch = append(scratch, g.packed[width*int(i):width*int(i)+width]...)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), scratch)
	return append(dst, '"'), scratch
}

// The method move copies an id within the list from the index "from" to the index "to", which is not larger. After a
// call of move(), the ids between the two indexes are invalid.
func (g *Given) move(to, from int) {
	switch width := g.scheme.Width(); {
	case width > 0:
		copy(g.packed[width*to:width*to+width], g.packed[width*from:width*from+width])
	case g.ends != nil:
		id := g.text(from)
		begin := uint32(0)
		if to > 0 {
			begin = g.ends[to-1]
		}
		g.ends[to] = begin + uint32(copy(g.packed[begin:], id))
	}
}

// The method cut keeps the ids of the first n users, and removes all other ids.
func (g *Given) cut(n int) {
	if width := g.scheme.Width(); width > 0 {
		g.packed = g.packed[:width*n]
	} else if g.ends != nil && n < len(g.ends) {
		g.ends = g.ends[:n]
		g.packed = g.packed[:g.ends[n-1]]
	}
}

// The method skip adds an empty id for a user whose id is not in the request.
func (g *Given) skip() {
	if width := g.scheme.Width(); width > 0 {
		g.packed = append(g.packed, make([]byte, width)...)
	} else if g.scheme.Kind() == ids.Text {
		g.ends = append(g.ends, uint32(len(g.packed)))
	}
}

// The method "distinct" removes repeated users and their ids, without changing the order of the request. Two ids with
// the same id image (64-bit keyed hash) are one user.
func (g *Given) distinct(users []capping.UserID) (distinct []capping.UserID, duplicates int) {
	distinct, duplicates = capping.DistinctMoved(users, g.move)
	g.cut(len(distinct))
	return distinct, duplicates
}

// The method "sorted" returns the distinct users in ascending order, and the ids of the users in this order.
func (g *Given) sorted(users []capping.UserID) ([]capping.UserID, *Given) {
	order := make([]int, len(users))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(users[a], users[b]) })
	order = slices.CompactFunc(order, func(a, b int) bool { return users[a] == users[b] })
	list, to := make([]capping.UserID, len(order)), &Given{scheme: g.scheme, quoted: g.quoted}
	for n, i := range order {
		list[n] = users[i]
		switch width := g.scheme.Width(); {
		case width > 0:
			to.packed = append(to.packed, g.packed[width*i:width*i+width]...)
		case g.ends != nil:
			to.packed = append(to.packed, g.text(i)...)
			to.ends = append(to.ends, uint32(len(to.packed)))
		}
	}
	return list, to
}

// The method name returns the id of the user with the index i as a JSON value. A nil *Given means that the request had
// dense ids as JSON numbers.
func (g *Given) name(i int, user capping.UserID) string {
	if g == nil {
		return strconv.FormatUint(uint64(user), 10)
	}
	return string(g.append(nil, i, user))
}

// The method "canonical" returns the canonical id text of the user with the index i. A nil *Given means that the
// request had dense ids as JSON numbers.
func (g *Given) canonical(i int, user capping.UserID) string {
	switch {
	case g == nil || g.scheme.Kind() == ids.Dense:
		return strconv.FormatUint(uint64(user), 10)
	case g.scheme.Kind() == ids.Text:
		return string(g.text(i))
	}
	width := g.scheme.Width()
	return string(g.scheme.Unpack(nil, g.packed[width*i:width*i+width]))
}

// givenDecoder decodes those ids of a request that the response will contain.
type givenDecoder struct {
	*decoder
	field  string        // name of the field with the array of ids
	path   func() string // returns the JSON path of the current id; nil: an element of field
	kind   ids.Kind
	parser *ids.Parser
	users  []capping.UserID
	given  *Given
}

// givenBytes is the memory in bytes for one user: an id image (8), an id (16), and two entries in the table that finds
// repeated users. The constant givenBytes does not include the bytes of text ids.
const givenBytes = 8 + 16 + 8

// givenIDs decodes a JSON array of at most "limit" ids, which the scheme parses. If the array has more ids, the error
// text ends with the argument "remedy", which tells the caller what to do instead.
func (d *decoder) givenIDs(scheme *ids.Scheme, field string, limit int, remedy string) (
	[]capping.UserID, *Given, error) {
	if !d.accept('[') {
		return nil, nil, Invalid(field, "%s is not an array of user ids", d.value())
	}
	if d.accept(']') {
		return nil, nil, nil
	}
	most := min(bytes.Count(d.data[d.pos:], []byte{','})+1, limit)
	if err := d.bounds.Reserve(int64(most) * givenBytes); err != nil {
		return nil, nil, err
	}
	g := &givenDecoder{decoder: d, field: field, kind: scheme.Kind(), parser: scheme.NewParser(),
		users: make([]capping.UserID, 0, most), given: &Given{scheme: scheme}}
	g.allocate(most)
	for {
		if len(g.users) == limit {
			return nil, nil, FieldFailure(api.CodeTooLarge, field, "has more than %d ids: %s", limit, remedy)
		}
		if err := g.one(); err != nil {
			return nil, nil, err
		}
		if d.pos < len(d.data) && d.data[d.pos] == ',' {
			d.pos++
			continue
		}
		if d.accept(']') {
			return g.users, g.given, nil
		}
		if !d.accept(',') {
			return nil, nil, d.syntax("',' or ']'")
		}
	}
}

// The method allocate allocates memory for at most n further ids of the request. For text ids, the caller of allocate()
// has already reserved the memory.
func (g *givenDecoder) allocate(n int) {
	if width := g.given.scheme.Width(); width > 0 {
		g.given.packed = make([]byte, 0, width*n)
	} else if g.kind == ids.Text {
		g.given.packed = make([]byte, 0, len(g.data)-g.pos)
		g.given.ends = make([]uint32, 0, n)
	}
}

// The method "reserved" returns the bytes of memory that the method allocate() needs for n ids.
func (g *givenDecoder) reserved(n int) int64 {
	if g.kind == ids.Text {
		return int64(len(g.data)-g.pos) + 4*int64(n)
	}
	return int64(g.given.scheme.Width() * n)
}

// The method one decodes the next id of the request.
func (g *givenDecoder) one() error {
	g.skipSpace()
	if g.kind == ids.UUID && g.dashedUUID() {
		return nil
	}
	start := g.pos
	text, quoted, err := g.text()
	if err != nil {
		return err
	}
	switch err := g.add(text, quoted); {
	case err != nil && g.kind == ids.Dense:
		g.pos = start
		return Invalid(g.at(), "%s is not a user id (0 to 4294967295)", g.value())
	case err != nil:
		return Invalid(g.at(), "%s", err)
	}
	return nil
}

// The method "at" returns the JSON path of the current id, for error texts.
func (g *givenDecoder) at() string {
	if g.path != nil {
		return g.path()
	}
	return g.field + "[" + strconv.Itoa(len(g.users)) + "]"
}

// dashedUUID decodes a UUID that is a JSON string of 36 bytes, and reports whether the next value is such a string.
// Nearly all UUIDs in requests are JSON strings of 36 bytes. The method dashedUUID does not search for the closing
// quote or for escapes, because the parser of UUIDs rejects such bytes.
func (g *givenDecoder) dashedUUID() bool {
	const length = 36
	value := g.data[g.pos:]
	if len(value) < length+2 || value[0] != '"' || value[length+1] != '"' || g.add(value[1:length+1], true) != nil {
		return false
	}
	g.pos += length + 2
	return true
}

// The method text reads a JSON string or a JSON number, and returns the text of the value.
func (g *givenDecoder) text() (text []byte, quoted bool, err error) {
	if g.pos < len(g.data) && g.data[g.pos] == '"' {
		field := g.field
		if g.path != nil {
			field = g.path()
		}
		text, err = g.decoder.text(field)
		return text, true, err
	}
	end := g.pos
	for end < len(g.data) && g.data[end]-'0' <= 9 {
		end++
	}
	fraction := end < len(g.data) && (g.data[end] == '.' || g.data[end]|0x20 == 'e')
	if end == g.pos || fraction || g.kind == ids.UUID || g.kind == ids.Text {
		return nil, false, g.notGiven()
	}
	text, g.pos = g.data[g.pos:end], end
	return text, false, nil
}

// notGiven returns the failure for a JSON value that cannot be an id.
func (g *givenDecoder) notGiven() error {
	if c := g.peek(); g.pos == len(g.data) || c == ']' || c == ',' {
		return g.syntax("a user id")
	}
	switch g.kind {
	case ids.Dense:
		return Invalid(g.at(), "%s is not a user id (0 to 4294967295)", g.value())
	case ids.Uint64:
		return Invalid(g.at(), "%s is not a uint64 id: such an id is a whole number from 0 to "+
			"18446744073709551615, or a string of its digits", g.value())
	}
	return Invalid(g.at(), "%s is not a string: ids of the kind %s are strings", g.value(), g.kind)
}

// The method add adds a decoded id to the users of the request.
func (g *givenDecoder) add(text []byte, quoted bool) (err error) {
	to, image := g.given, uint64(0)
	switch g.kind {
	case ids.UUID, ids.Uint64:
		if to.packed, image, err = g.parser.AppendPacked(to.packed, text); err != nil {
			return err
		}
		to.quoted = to.quoted || quoted ||
			g.kind == ids.Uint64 && binary.BigEndian.Uint64(to.packed[len(to.packed)-8:]) > maxNumber
	default:
		if image, err = g.parser.Parse(text); err != nil {
			return err
		}
		to.quoted = true
		if g.kind == ids.Text {
			to.packed = append(to.packed, text...)
			to.ends = append(to.ends, uint32(len(to.packed)))
		}
	}
	g.users = append(g.users, capping.UserID(image))
	return nil
}
