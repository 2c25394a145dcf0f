package wire

import (
	"strconv"
	"time"

	"capper/internal/capping"
)

// denialTexts caches the JSON texts about the reasons for denials. All users of one segment whom one rule denies have
// the same text. The cache has an entry for each segment code, reason and rule.
type denialTexts struct {
	d     *capping.Decisions
	texts [][reasons][]denialText
	zones map[*time.Location]string
	place *time.Location // time zone of the previous user, and the JSON text of the zone
	text  string
}

// A cause identifies a cached text about a denial by segment code, reason and rule.
type cause struct {
	code uint8
	by   capping.Reason
	rule uint8
}

// denialText holds the part of a denied user's JSON text between the value of "user_id" and the value of "retry_at".
type denialText struct {
	text   string // "": not yet built
	byZone bool   // the user's time zone and the key retry_at follow
}

// The method "denials" writes the list of denied users.
func (a *answer) denials() {
	t := denialTexts{d: a.d, texts: make([][reasons][]denialText, len(a.d.Names)+1)}
	var instants instantWriter
	var last cause
	var text *denialText
	out, begin := a.out, len(a.out)
	for i := range a.d.Verdicts {
		v := &a.d.Verdicts[i]
		if v.Outcome != capping.Denied {
			continue
		}
		if this := (cause{a.d.Codes[i], v.By, v.Rule}); text == nil || this != last {
			text, last = t.of(i, v), this
		}
		out = append(out, `,{"user_id":`...)
		if a.given == nil {
			out = strconv.AppendUint(out, uint64(a.d.Users[i]), 10)
		} else {
			out = a.given.append(out, i, a.d.Users[i])
		}
		out = append(out, text.text...)
		if text.byZone {
			out = append(out, t.zone(i)...)
		}
		out = append(instants.append(out, v.FreesAt), '}')
	}
	if text == nil {
		out = append(out, ',')
	}
	out[begin] = '['
	a.out = append(out, ']')
}

func (t *denialTexts) of(i int, v *capping.Verdict) *denialText {
	rows, rule := &t.texts[t.d.Codes[i]][v.By], int(v.Rule)
	for rule >= len(*rows) {
		*rows = append(*rows, denialText{})
	}
	found := &(*rows)[rule]
	if found.text == "" {
		*found = t.make(i, v)
	}
	return found
}

func (t *denialTexts) make(i int, v *capping.Verdict) denialText {
	limit, most := t.d.Limit(i), 0
	text := appendText([]byte(`,"segment":`), SegmentName(t.d.Segment(i)))
	text = appendText(append(text, `,"limit":`...), t.d.DeniedBy(i))
	if v.By == capping.BySuppression {
		text = appendText(append(text, `,"set":`...), t.d.Set(i))
	}
	if limit != nil {
		most = limit.Max
	}
	text = strconv.AppendInt(append(text, `,"max":`...), int64(most), 10)
	switch {
	case limit != nil && limit.UserZone, v.By == capping.ByQuiet:
		return denialText{string(text), true}
	}
	return denialText{string(append(text, `,"retry_at":`...)), false}
}

// The method zone returns JSON text with the time zone in which the user with the index i was denied, followed by the
// JSON key "retry_at".
func (t *denialTexts) zone(i int) string {
	place := t.d.Zone(i)
	if place == t.place && t.text != "" {
		return t.text
	}
	text, ok := t.zones[place]
	if !ok {
		if t.zones == nil {
			t.zones = map[*time.Location]string{}
		}
		text = string(append(appendText([]byte(`,"timezone":`), place.String()), `,"retry_at":`...))
		t.zones[place] = text
	}
	t.place, t.text = place, text
	return text
}
