package console

import (
	"fmt"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

func userLimits(k *userKnown) *frame.Table {
	t := &frame.Table{
		Name: "limits", Caption: "Limits of segment " + k.Segment + ", and how much of them the user " +
			"has used",
		Columns: []frame.Column{
			{Title: "Limit"}, {Title: "Used", Means: "sends in its window", Number: true},
			{Title: "At most", Means: "sends in its window", Number: true},
			{Title: "Window"}, {Title: "Channels", Means: "whose sends count"},
			{Title: "A slot frees", Means: "when it is full"},
		},
		Empty: "No limit applies to this user. Limits are configured under the key limits.", Folded: true,
	}
	for _, l := range k.Limits {
		name, frees := frame.Text(l.Name), frame.Text("there is room")
		if l.Shadow {
			name = name.With("shadow: denies nobody")
		}
		switch {
		case l.RetryAt != nil:
			frees = frame.Time(*l.RetryAt)
		case l.Max == 0:
			frees = frame.Text("never: the limit is 0")
		}
		t.Rows = append(t.Rows, []frame.Cell{name, frame.Count(l.Used), frame.Count(l.Max),
			frame.Text(windowWords(l.Limit)), frame.Text(onChannels(l.Channels)), frees})
	}
	return t
}

func userSends(k *userKnown) *frame.Table {
	t := &frame.Table{
		Name: "sends", Caption: "Recorded sends that count against limits, latest first",
		Columns: []frame.Column{{Title: "Sent"}, {Title: "Channel"}, {Title: "Message"},
			{Title: "Team", Means: "namespace of the key"}},
		Empty: "No send of this user is recorded: none was allowed recently, or all were given back or erased.",
	}
	for i := len(k.Sends) - 1; i >= 0; i-- {
		s := k.Sends[i]
		t.Rows = append(t.Rows, []frame.Cell{frame.Time(s.At), frame.Text(orWords(s.Channel, "none")),
			messageCell(k, s.MessageID, s.Namespace, s.Title), frame.Text(orWords(s.Namespace, "not kept"))})
	}
	return t
}

// orWords returns the text, "none" for an empty text, or the argument "unknown" for a nil pointer.
func orWords(text *string, unknown string) string {
	switch {
	case text == nil:
		return unknown
	case *text == "":
		return "none"
	}
	return *text
}

// messageCell returns a table cell for a message. If the visitor may see the campaign of the message, the cell has a
// link to the campaign's page.
func messageCell(k *userKnown, id, namespace *string, title string) frame.Cell {
	if id == nil {
		return frame.Text("not remembered")
	}
	of := ""
	if namespace != nil {
		of = *namespace
	}
	if !k.MayOpen(of) {
		return frame.Titled(title, *id, "")
	}
	return frame.Titled(title, *id, messageAddress(*id, of))
}

func deniedTable(k *userKnown) *frame.Table {
	t := &frame.Table{
		Name: "decisions", Caption: "Decisions about the user, latest first",
		Columns: []frame.Column{
			{Title: "Decided"}, {Title: "Channel"}, {Title: "Message"}, {Title: "Outcome"}, {Title: "Held back by"},
			{Title: "Asked by", Means: "client and key"},
		},
		Empty: k.Past.Empty,
	}
	for i := len(k.Past.Decisions) - 1; i >= 0; i-- {
		d := k.Past.Decisions[i]
		by, message := d.Limit, frame.Text("")
		switch {
		case d.Kind == "set_change":
			by = d.Set
		case d.Set != "":
			by += " (" + d.Set + ")"
		}
		if d.MessageID != "" {
			message = messageCell(k, &d.MessageID, &d.Namespace, d.Title)
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Time(d.At), frame.Text(channelWords(d)),
			message, frame.Text(outcomeWords(d)),
			frame.Text(by), frame.Text(strings.TrimSpace(d.Client + " " + d.Key)),
		})
	}
	return t
}

func channelWords(d api.Decision) string {
	if d.Channel == "" {
		switch d.Kind {
		case "release":
			return "all"
		case "set_change":
			return ""
		}
		return "none"
	}
	return d.Channel
}

// outcomeTexts maps each outcome of a decision in the audit to words that visitors understand.
var outcomeTexts = map[string]string{
	"allowed": "allowed", "replayed": "allowed, recorded before", "denied": "held back",
	"unavailable": "not decided: try again",
	"released":    "send given back", "absent": "no send to give back",
	"release_unavailable": "unknown whether the send was given back",
	"added":               "added to the set", "removed": "removed from the set",
	"change_unavailable": "unknown whether the set was changed",
}

// outcomeWords describes the outcome of a decision in words.
func outcomeWords(d api.Decision) string {
	said, known := outcomeTexts[d.Outcome]
	if !known {
		said = d.Outcome
	}
	if d.Exempt {
		said += ", exempt from limits"
	}
	return said
}

// The type "past" holds the decisions about a user from the audit (record of all decisions), or the reason why there
// are none.
type past struct {
	Decisions []api.Decision
	Notes     []string
	Empty     string
	Read      bool // reading the audit succeeded
}

// pastDays returns the length of the period for which the page has read the audit (record of all decisions), in words.
func pastDays(days int) string { return frame.Span(time.Duration(days) * 24 * time.Hour) }

func nothingIn(days int) string {
	return fmt.Sprintf("The audit has no decision about this user in the last %s: no call named the user, or the "+
		"records are not written yet.", pastDays(days))
}

func decisionsOf(v *frame.Visit, user userRef, since time.Time) (*api.Decisions, error) {
	if user.id == "" {
		return v.API.Decisions(v.Context(), user.dense, since)
	}
	found, err := v.API.DecisionsOfID(v.Context(), user.id, since)
	if err != nil {
		return nil, err
	}
	return &api.Decisions{Since: found.Since, More: found.More, Faults: found.Faults,
		Decisions: found.Decisions}, nil
}

// pastOf reads the decisions about the user from the audit. If reading the audit fails, the page about the user still
// shows its other data.
func pastOf(v *frame.Visit, user userRef, days int) past {
	found, err := decisionsOf(v, user, v.Now.AddDate(0, 0, -days))
	switch {
	case client.HasCode(err, client.CodeConflict):
		return past{Empty: "The audit is off, so denials are not recorded. Set the key audit in the configuration " +
			"to record decisions; this page then shows them."}
	case err != nil:
		return past{Empty: "The audit could not be read now, so denials are not shown; the rest of the page is " +
			"complete. The Overview shows the state of the audit."}
	}
	p := past{Decisions: found.Decisions, Empty: nothingIn(days), Read: true}
	if found.More {
		p.Notes = append(p.Notes, "Older decisions are not shown: the audit was read back to "+
			found.Since.UTC().Format("2 Jan 2006, 15:04 UTC")+", the limit of this page.")
	}
	if len(found.Faults) > 0 {
		p.Notes = append(p.Notes, "Some audit files cannot be read, so their decisions are missing here: "+
			frame.List(found.Faults)+". capper audit verify shows details.")
	}
	return p
}
