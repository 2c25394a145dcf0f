package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/terminal"
)

// MessagesCommand is the command `capper messages [ID]`.
type MessagesCommand struct {
	Service
	MessageID string  `arg:"" optional:"" name:"id" help:"Id of the message whose counts the command shows. Default: list recent messages."`
	Since     moment  `placeholder:"TIME" help:"List only messages with at least one call since this time (2026-11-22), or within this age (7d, 12h). Default: 7d."`
	Until     moment  `placeholder:"TIME" help:"List only messages whose latest call is older than this age (7d, 12h) or time (2026-11-22)."`
	Find      string  `placeholder:"TEXT" help:"List only messages whose id or title contains this text; upper and lower case do not matter."`
	Channel   string  `placeholder:"NAME" help:"List only messages on this channel."`
	MinAsked  int64   `placeholder:"N" help:"List only messages for which the filter calls contained at least N users in total. A user in two calls counts twice."`
	Sort      string  `default:"last_call" enum:"last_call,asked" help:"Order of the list: 'last_call' (message with the latest call first) or 'asked' (message with the most users in its filter calls first)."`
	Max       int     `default:"100" placeholder:"N" help:"Maximum number of messages to list, up to 1000."`
	Cursor    string  `placeholder:"CURSOR" help:"Cursor (text) that an earlier run printed at the end of a list. With this cursor, the command prints the next part of the list."`
	Title     *string `placeholder:"TEXT" help:"New title of the message. Lists of messages show the title beside the id. An empty text removes the title. The API key needs the scope filter."`
	Namespace string  `placeholder:"NAME" help:"Namespace of the messages, if the API key has no namespace. Default: all namespaces for a list, and no namespace for one message."`
}

// The method Validate rejects invalid combinations of flags, for example flags for a list of messages together with the
// id of one message.
func (c *MessagesCommand) Validate() error {
	if c.MessageID != "" && (c.Since.Given() || c.Until.Given() || c.Channel+c.Find+c.Cursor != "" || c.MinAsked != 0 ||
		c.Sort != client.SortLastCall) {
		return errors.New(
			"--since, --until, --find, --channel, --min-asked, --sort and --cursor " +
				"must not be combined with a message id")
	}
	if c.MessageID == "" && c.Title != nil {
		return errors.New("--title requires a message id")
	}
	if c.MinAsked < 0 {
		return fmt.Errorf("--min-asked: the number of users must be 0 or more, got %d", c.MinAsked)
	}
	if c.Max < 1 || c.Max > 1000 {
		return fmt.Errorf("--max: the number of messages to list must be 1 to 1000, got %d", c.Max)
	}
	return nil
}

// The method Run prints the list of messages, or the counts of one message.
func (c *MessagesCommand) Run(ctx context.Context, on *terminal.Streams) error {
	service, err := c.Client()
	if err != nil {
		return err
	}
	if c.MessageID == "" {
		return c.list(ctx, on, service)
	}
	if c.Title != nil {
		return c.setTitle(ctx, on, service)
	}
	found, err := service.MessageUsers(ctx, c.MessageID, c.Namespace)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, found)
	}
	for _, fault := range found.Faults {
		fmt.Fprintf(on.Err, "users are missing: %s\n", fault)
	}
	if len(found.Channels) == 0 {
		fmt.Fprintf(on.Out, "message %s, %s: no calls yet\n", plain(found.MessageID), plain(found.Title))
	}
	for i := range found.Channels {
		if err := printMessage(on, &found.Channels[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *MessagesCommand) setTitle(ctx context.Context, on *terminal.Streams, service *client.Client) error {
	set, err := service.SetTitle(ctx, c.MessageID, c.Namespace, *c.Title)
	switch {
	case err != nil:
		return c.Hinted(err)
	case c.JSON:
		return terminal.JSON(on.Out, set)
	case set.Title == "":
		fmt.Fprintf(on.Out, "message %s has no title\n", plain(set.MessageID))
	default:
		fmt.Fprintf(on.Out, "message %s has the title %s\n", plain(set.MessageID), plain(set.Title))
	}
	return nil
}

func (c *MessagesCommand) list(ctx context.Context, on *terminal.Streams, service *client.Client) error {
	query := client.MessagesQuery{ID: c.Find, Channel: c.Channel, MinAsked: c.MinAsked, Sort: c.Sort, Max: c.Max,
		Cursor: c.Cursor, Namespace: c.Namespace}
	if c.Until.Given() {
		query.Until = c.Until.Instant(time.Now()).Time()
	}
	if c.Since.Given() {
		query.Since = c.Since.Instant(time.Now()).Time()
	}
	found, err := service.Messages(ctx, query)
	if err != nil {
		return c.Hinted(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, found)
	}
	if len(found.Messages) == 0 {
		fmt.Fprintln(on.Out, "no messages")
		return sayMore(on, found)
	}
	titled := slices.ContainsFunc(found.Messages, func(m api.Message) bool { return m.Title != "" })
	rows := [][]any{{"MESSAGE", "NAMESPACE", "CHANNEL", "ALLOWED", "RELEASED", "ASKED", "DENIED", "UNAVAILABLE",
		"LAST CALL"}}
	if titled {
		rows[0] = append([]any{"TITLE"}, rows[0]...)
	}
	for i := range found.Messages {
		m := &found.Messages[i]
		row := []any{
			plain(m.MessageID), shown(m.Namespace), shown(m.Channel), sends(m, m.Allowed), sends(m, m.Released),
			m.Asked, sum(m.Denied), m.Unavailable, seconds(m.LastCall),
		}
		if titled {
			row = append([]any{shown(m.Title)}, row...)
		}
		rows = append(rows, row)
	}
	if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
		return err
	}
	return sayMore(on, found)
}

// sayMore prints the command that lists the next page of messages.
func sayMore(on *terminal.Streams, found *api.Messages) error {
	if found.Next != nil {
		fmt.Fprintf(on.Err, "more messages exist: list them with --cursor %s\n", *found.Next)
	}
	return nil
}

// The function "sends" formats the number n of sends of the message m for a table.
func sends(m *api.Message, n int64) string {
	if m.AtLeast {
		return fmt.Sprintf("at least %d", n)
	}
	return strconv.FormatInt(n, 10)
}

// printMessage prints the counts of a message on one channel.
func printMessage(on *terminal.Streams, m *api.Message) error {
	title := ""
	if m.Title != "" {
		title = ", " + plain(m.Title)
	}
	fmt.Fprintf(on.Out, "message %s%s, channel %s: %s\n", plain(m.MessageID), title, shown(m.Channel), when(m))
	if m.FromAudit {
		fmt.Fprintln(on.Out, "The store does not count this message: all numbers are of the audit.")
	}
	if m.Users != nil {
		if err := printUsers(on, m.Users); err != nil {
			return err
		}
	}
	rows := [][]any{
		{"allowed", sends(m, m.Allowed), "sends that were recorded, each once"},
		{"released", sends(m, m.Released), "of those, given back"},
		{"asked", m.Asked, "results of calls, like all lines below: a user in two calls counts twice"},
		{"replayed", m.Replayed, "already recorded by an earlier call"},
		{"unavailable", m.Unavailable, ""},
	}
	for _, limit := range sortedKeys(m.Denied) {
		rows = append(rows, []any{"denied by " + limit, m.Denied[limit], ""})
	}
	for _, set := range sortedKeys(m.Suppressed) {
		rows = append(rows, []any{"suppressed by " + set, m.Suppressed[set], ""})
	}
	for _, limit := range sortedKeys(m.ShadowDenied) {
		rows = append(rows, []any{"would be denied by " + limit, m.ShadowDenied[limit], "shadow: counted only"})
	}
	if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
		return err
	}
	segments := [][]any{{"SEGMENT", "ASKED", "ANSWERED ALLOWED", "ANSWERED DENIED"}}
	for _, name := range sortedKeys(m.Segments) {
		s := m.Segments[name]
		segments = append(segments, []any{name, s.Asked, s.Allowed, s.Denied})
	}
	if len(segments) > 1 {
		if err := terminal.Table(on.Out, terminal.Left, segments...); err != nil {
			return err
		}
	}
	if len(m.ConfigVersions) > 0 {
		fmt.Fprintf(on.Out, "configuration: %s\n", strings.Join(m.ConfigVersions, ", "))
	}
	return nil
}

// printUsers prints the number of distinct users of a message for each result, such as allowed or unavailable.
func printUsers(on *terminal.Streams, u *api.MessageUsers) error {
	rows := [][]any{{"USERS", "COUNT", "OF ASKED"}, {"asked", u.Asked, ""}}
	add := func(name string, users int64) {
		share := ""
		if u.Asked > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(users)/float64(u.Asked))
		}
		rows = append(rows, []any{name, users, share})
	}
	add("allowed", u.Allowed)
	add("released", u.Released)
	for _, limit := range sortedKeys(u.Denied) {
		add("denied by "+limit, u.Denied[limit])
	}
	for _, set := range sortedKeys(u.Suppressed) {
		add("  of them by set "+set, u.Suppressed[set])
	}
	add("unavailable", u.Unavailable)
	if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil || len(u.Segments) == 0 {
		return err
	}
	segments := [][]any{{"SEGMENT OF TODAY", "USERS ASKED", "ALLOWED", "RELEASED", "DENIED", "UNAVAILABLE"}}
	for _, name := range sortedKeys(u.Segments) {
		s := u.Segments[name]
		segments = append(segments, []any{name, s.Asked, s.Allowed, s.Released, s.Denied, s.Unavailable})
	}
	return terminal.Table(on.Out, terminal.Left, segments...)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sum(counts map[string]int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}

func calls(n int64) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}

// The function "plain" formats a message id for the terminal. The function "plain" encloses an id with spaces or
// special characters in quotation marks.
func plain(id string) string {
	if quoted := fmt.Sprintf("%q", id); quoted != `"`+id+`"` || strings.ContainsAny(id, " \u00a0") {
		return quoted
	}
	return id
}

// The function "when" returns a text with the times of the first and the latest call about a message. For a message
// with imported sends and no calls, the text says that the sends were imported.
func when(m *api.Message) string {
	if m.FirstCall.IsZero() && !m.LastCall.IsZero() {
		return "no calls, but imported sends at " + seconds(m.LastCall)
	}
	return fmt.Sprintf("%s from %s to %s", calls(m.Calls), seconds(m.FirstCall), seconds(m.LastCall))
}

func seconds(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}
