package console

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
)

// The address of the page with a trial's result contains the result, so that every service instance can show the page
// to every visitor. These constants limit the length of the address.
const (
	mostAddress     = 6000 // maximum size in bytes of the encrypted result
	addressSegments = 30   // maximum number of segments with names
	addressName     = 100  // maximum number of characters of a file name
)

// keptTry is the result of a trial of user ids at a certain time. The type keptTry does not contain the user ids.
type keptTry struct {
	At      time.Time
	Channel string
	Tried   tried
}

// The function keep returns an address that contains the result of a trial.
func keep(v *frame.Visit, p *tryView) (string, error) {
	k := keptTry{v.Now, p.Channel, *p.Tried}
	k.Tried.What = shortened(k.Tried.What)
	k.Tried.Summary = fewerSegments(k.Tried.Summary)
	if o := k.Tried.Outlook; o != nil {
		few := *o
		few.Points = slices.Clone(o.Points)
		for i := range few.Points { // an outlook needs only these two counts
			s := &few.Points[i].Summary
			few.Points[i].Summary = api.Summary{Allowed: s.Allowed, Denied: s.Denied}
		}
		k.Tried.Outlook = &few
	}
	text := ""
	for _, drop := range []func(){func() {}, func() { k.Tried.Used = nil }, func() { k.Tried.Outlook = nil }} {
		drop()
		data, err := json.Marshal(&k)
		if err != nil {
			return "", err
		}
		if text = v.Seal(data); len(text) <= mostAddress {
			break
		}
	}
	return "/console/" + tryAt + "?" + url.Values{"result": {text}}.Encode(), nil
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > addressName {
		return string(runes[:addressName]) + "…"
	}
	return text
}

// fewerSegments returns a copy of a summary with the largest segments, and with one sum for all other segments.
func fewerSegments(s *api.Summary) *api.Summary {
	if len(s.Segments) <= addressSegments {
		return s
	}
	few := *s
	few.Segments = map[string]api.SegmentSummary{}
	names := slices.SortedFunc(maps.Keys(s.Segments), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Segments[b].Requested, s.Segments[a].Requested), cmp.Compare(a, b))
	})
	for i, name := range names {
		if i >= addressSegments {
			name = "(others)"
		}
		sum := few.Segments[name]
		sum.Requested += s.Segments[names[i]].Requested
		sum.Allowed += s.Segments[names[i]].Allowed
		few.Segments[name] = sum
	}
	return &few
}

// The method "again" returns the page with the result of an earlier trial. The address of the page contains the result.
func (ps tryPages) again(v *frame.Visit, text string) (*frame.View, error) {
	var k keptTry
	data, ok := v.Open(text)
	if !ok || json.Unmarshal(data, &k) != nil || k.Tried.Summary == nil {
		return nil, &frame.Refusal{
			Status: http.StatusGone, What: "This address holds no result of this service, or the API key that made " +
				"it does not exist any more.",
			Do: "Check that the address is complete, or open Try it and send the ids again.",
		}
	}
	p, err := begin(v, k.Channel)
	if err != nil {
		return nil, err
	}
	p.Channel, p.Tried, p.At = k.Channel, &k.Tried, k.At
	view := &frame.View{Title: "Try it", Question: tryQuestion, Data: p, Calls: []string{"POST /v1/forecast"}}
	present(p, view, v)
	return view, nil
}
