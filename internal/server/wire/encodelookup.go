package wire

import (
	"encoding/json"
	"strconv"

	"capper/internal/capping"
)

// EncodeLookup appends the response of a lookup call to dst.
func EncodeLookup(dst []byte, r *LookupRequest, m *membership) []byte {
	a := &answer{out: dst, given: r.Given, form: r.Form}
	a.raw(`{"generation":`).text(m.Generation)
	switch r.Form {
	case InPositions, InPacked:
		form, _ := r.Form.names()
		places := capping.AppendDense(nil, r.named(r.Users))
		a.raw(`,"segment_`).raw(form).raw(`":{`).segmentBitmaps(m, places)
		a.raw(`},"set_`).raw(form).raw(`":{`).setBitmaps(m, places)
		a.raw(`}`).taken(&r.Audience)
	case InBitmaps:
		a.raw(`,"segments":{`).segmentBitmaps(m, m.Users)
		a.raw(`},"sets":{`).setBitmaps(m, m.Users)
		a.raw(`}`).taken(&r.Audience)
	default:
		a.raw(`,"users":[`).memberships(m, r.Users)
		a.raw(`]`).taken(&r.Audience)
	}
	a.raw("}\n")
	return a.out
}

// A combination is the segment of a user together with the sets that contain the user. Usually, many users of a call
// have the same combination.
type combination struct {
	sets uint64
	code uint8
}

// The method "memberships" writes the segment and the sets of each user. The method "memberships" encodes the JSON text
// of each combination of segment and sets only once.
func (a *answer) memberships(m *membership, users []capping.UserID) {
	texts := map[combination]string{}
	var last combination
	text := ""
	for i, user := range m.Users {
		this := combination{code: m.Codes[i]}
		if m.In != nil {
			this.sets = m.In[i]
		}
		if text == "" || this != last {
			if text = texts[this]; text == "" {
				text = textOf(m, this)
				texts[this] = text
			}
			last = this
		}
		if i > 0 {
			a.out = append(a.out, ',')
		}
		a.out = append(a.out, `{"user_id":`...)
		if a.given == nil {
			a.out = strconv.AppendUint(a.out, uint64(user), 10)
		} else {
			a.out = a.given.append(a.out, i, users[i])
		}
		a.out = append(a.out, text...)
	}
}

// textOf returns the JSON text of a segment and sets, which follows the field "user_id" of a user in the response.
func textOf(m *membership, c combination) string {
	text := appendText([]byte(`,"segment":`), segmentOf(m, int(c.code)))
	text = append(text, `,"sets":[`...)
	for k, first := 0, true; k < len(m.Sets); k++ {
		if c.sets>>k&1 == 0 {
			continue
		}
		if !first {
			text = append(text, ',')
		}
		text, first = appendText(text, m.Sets[k]), false
	}
	return string(append(text, `]}`...))
}

// segmentOf returns the name that responses show for the segment with the given code.
func segmentOf(m *membership, code int) string {
	if code == 0 {
		return SegmentName("")
	}
	return SegmentName(m.Names[code-1])
}

// segmentBitmaps writes a bitmap of the users in each segment that has users. For each user, the slice "of" holds the
// number that represents the user in the bitmaps of the response.
func (a *answer) segmentBitmaps(m *membership, of []uint32) {
	lists := make([][]uint32, len(m.Names)+1)
	for i, user := range of {
		lists[m.Codes[i]] = append(lists[m.Codes[i]], user)
	}
	first := true
	for code, users := range lists {
		if len(users) == 0 {
			continue
		}
		if !first {
			a.raw(`,`)
		}
		first = false
		base64Bitmap(a.text(segmentOf(m, code)).raw(`:`), users)
	}
}

// setBitmaps writes a bitmap of the users in each requested set. For each user, the slice "of" holds the number that
// represents the user in the bitmaps of the response.
func (a *answer) setBitmaps(m *membership, of []uint32) {
	for k, name := range m.Sets {
		a.users = a.users[:0]
		for i, user := range of {
			if m.In[i]>>k&1 == 1 {
				a.users = append(a.users, capping.UserID(user))
			}
		}
		if k > 0 {
			a.raw(`,`)
		}
		a.text(name).raw(`:`).bitmap(a.users)
	}
}

// The method "taken" writes the number of users that an audience query selected, with the cursor for the next call.
func (a *answer) taken(of *Audience) {
	if of.Taken == nil {
		return
	}
	text, err := json.Marshal(of.Taken)
	if err != nil { // encoding texts and numbers never fails
		text = []byte(`null`)
	}
	a.raw(`,"audience":`)
	a.out = append(a.out, text...)
}
