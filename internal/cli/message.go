package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/audit"
	"capper/internal/terminal"
)

// messageCommand is the command `capper audit message ID`.
type messageCommand struct {
	Place
	Span
	MessageID string `arg:"" help:"Id of the message whose calls the command lists."`
	Namespace string `placeholder:"NAME" help:"Namespace of the message, which is the namespace of the sender's API key. Default: no namespace."`
	Channel   string `placeholder:"NAME" help:"List only calls for this channel, and calls that cancel the sends on all channels. Default: list all calls."`
	Calls     int    `default:"50" placeholder:"N" help:"Number of calls to list, latest first, or 0 to list none; the totals always include all calls."`
	JSON      bool   `help:"Print the result as JSON."`
}

// The method Validate rejects a negative flag --calls.
func (c *messageCommand) Validate() error {
	if c.Calls < 0 {
		return errors.New("--calls must not be negative")
	}
	return nil
}

// The type "call" describes one recorded call about the message, in the output of the command.
type call struct {
	Time     string           `json:"time"`
	TookMS   int64            `json:"took_ms"`
	Kind     string           `json:"kind"`
	Channel  string           `json:"channel"`
	Exempt   bool             `json:"exempt,omitempty"`
	Audience string           `json:"audience,omitempty"`
	Caller   string           `json:"caller"`
	Users    int64            `json:"users"`
	Outcomes map[string]int64 `json:"outcomes"`

	Generation string `json:"generation"`
	Config     string `json:"config_version"`
	Instance   string `json:"instance"`
	Sequence   uint64 `json:"sequence"`
}

// segmentTotals holds the numbers of decisions about a message, for the users of one segment.
type segmentTotals struct {
	Asked       int64 `json:"asked"`
	Allowed     int64 `json:"allowed"` // including replayed
	Denied      int64 `json:"denied"`
	Unavailable int64 `json:"unavailable"`
}

// The type totals holds the numbers of recorded decisions about a message, over all calls.
type totals struct {
	MessageID string                    `json:"message_id"`
	Namespace string                    `json:"namespace,omitempty"`
	Calls     int64                     `json:"calls"`
	Users     int64                     `json:"users"` // a user counts once for each call
	Outcomes  map[string]int64          `json:"outcomes"`
	Denied    map[string]int64          `json:"denied"` // by limit or reason, with the suppressing set
	Segments  map[string]*segmentTotals `json:"segments"`
	Latest    []call                    `json:"latest_calls"`
}

// The method Run prints the recorded calls about the message, and the counts over all calls.
func (c *messageCommand) Run(ctx context.Context, on *terminal.Streams) error {
	q, err := c.query()
	if err != nil {
		return err
	}
	from, err := c.archive(ctx)
	if err != nil {
		return err
	}
	message := messageOf(c.Namespace, c.MessageID)
	q.Message, q.Kinds = &message, kinds()
	r := &reading{archive: from}
	t := &totals{MessageID: c.MessageID, Namespace: c.Namespace, Outcomes: map[string]int64{},
		Denied: map[string]int64{}, Segments: map[string]*segmentTotals{}, Latest: []call{}}
	err = r.each(ctx, q, func(record *audit.Record) error {
		on := r.channel(ctx, record)
		if c.Channel != "" && on != c.Channel && (record.Kind == audit.Filter || record.Channel != 0) {
			return nil
		}
		t.add(record, on, c.Calls)
		return nil
	})
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.JSON(on.Out, t)
	} else if t.Calls > 0 || len(r.faults) == 0 { // a damaged file may contain more calls
		err = t.print(on)
	}
	if err != nil {
		return err
	}
	return damaged(r.faults)
}

func (t *totals) add(r *audit.Record, channel string, keep int) {
	one := call{Time: r.At.Time().Format(milliseconds), TookMS: r.Took.Milliseconds(), Kind: r.Kind.String(),
		Channel: channel, Exempt: r.Exempt, Audience: r.Audience,
		Caller: caller(r.Client, r.Key), Outcomes: map[string]int64{}, Generation: r.Generation, Config: r.Config,
		Instance: r.Instance, Sequence: r.Sequence}
	for i := range r.Groups {
		g := &r.Groups[i]
		n := int64(g.Count())
		one.Users += n
		one.Outcomes[g.Outcome.String()] += n
		t.Outcomes[g.Outcome.String()] += n
		if g.Outcome == audit.Denied {
			t.Denied[by(g)] += n
		}
	}
	t.Calls++
	t.Users += one.Users
	for _, s := range r.Segments {
		name := cmp.Or(s.Name, "default")
		if t.Segments[name] == nil {
			t.Segments[name] = &segmentTotals{}
		}
		of := t.Segments[name]
		of.Asked, of.Allowed, of.Denied, of.Unavailable = of.Asked+int64(s.Requested), of.Allowed+int64(s.Allowed),
			of.Denied+int64(s.Denied), of.Unavailable+int64(s.Unavailable)
	}
	if t.Latest = append(t.Latest, one); len(t.Latest) > keep {
		t.Latest = t.Latest[1:]
	}
}

func (t *totals) print(on *terminal.Streams) error {
	if t.Calls == 0 {
		_, err := fmt.Fprintf(on.Out, "the audit has no call of message %s in this period\n", t.MessageID)
		return err
	}
	if len(t.Latest) > 0 {
		rows := [][]any{{"TIME", "TOOK", "KIND", "CHANNEL", "USERS", "OUTCOMES", "GENERATION", "CONFIG", "CALLER"}}
		for i := range t.Latest {
			one := &t.Latest[i]
			rows = append(rows, []any{one.Time, fmt.Sprintf("%d ms", one.TookMS), one.Kind, shown(one.Channel),
				one.Users, counts(one.Outcomes), one.Generation, one.Config, one.Caller})
		}
		if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
			return err
		}
	}
	rows := [][]any{{"calls", t.Calls, ""}, {"users", t.Users, "each in each call"}}
	for _, outcome := range slices.Sorted(maps.Keys(t.Outcomes)) {
		if outcome != audit.Denied.String() {
			rows = append(rows, []any{outcome, t.Outcomes[outcome], ""})
		}
	}
	for _, limit := range slices.Sorted(maps.Keys(t.Denied)) {
		rows = append(rows, []any{"denied", t.Denied[limit], "by " + limit})
	}
	if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
		return err
	}
	rows = [][]any{{"SEGMENT", "ASKED", "ANSWERED ALLOWED", "ANSWERED DENIED", "UNAVAILABLE"}}
	for _, name := range slices.Sorted(maps.Keys(t.Segments)) {
		s := t.Segments[name]
		rows = append(rows, []any{name, s.Asked, s.Allowed, s.Denied, s.Unavailable})
	}
	return terminal.Table(on.Out, terminal.Left, rows...)
}

// The function "counts" formats several names and their counts for one cell of a table.
func counts(of map[string]int64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%d %s", of[name], name))
	}
	return strings.Join(list, ", ")
}
