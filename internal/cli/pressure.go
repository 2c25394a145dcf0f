package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/pressure"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// PressureCommand is the command `capper pressure`.
type PressureCommand struct {
	Service
	Place
	Names
	Weeks     int    `default:"5" placeholder:"N" help:"Number of weeks to count, up to 27. A week is a period of 7 days, and the latest week ends at --until."`
	Until     moment `placeholder:"TIME" help:"End of the latest week: an age (1d) or a time (2026-11-23). Default: now."`
	Channel   string `placeholder:"NAME" help:"Count only messages on this channel."`
	Namespace string `placeholder:"NAME" help:"Count only messages of this namespace."`
	Max       int    `default:"20" placeholder:"N" help:"Maximum number of campaigns to list, up to 1000."`
	CSV       string `name:"csv" enum:",people,at-limits,campaigns,held-back" default:"" placeholder:"TABLE" help:"Print only one table, as CSV: 'people' (people by number of messages), 'at-limits' (people at each limit), 'campaigns' (messages of each campaign) or 'held-back' (people to whom limits denied a campaign)."`
	Segment   string `placeholder:"NAME" help:"Name of the segment whose users the command writes to the file of --users. The name 'default' stands for users in no segment."`
	Limit     string `placeholder:"NAME" help:"Name of the limit that the users in the file of --users have reached. Default: any limit."`
	Users     string `placeholder:"FILE" help:"Output file for the users of --segment who are at a limit at the end of the latest week: a bitmap if the name ends in .roaring, otherwise one user id per line."`
}

// Help returns the help text below the flags.
func (c *PressureCommand) Help() string {
	return "Shows how many people got 0, 1, 2 … messages in each week, by segment, channel and namespace. The " +
		"command also shows how many people are at a limit, and which campaigns sent the most messages. If limits " +
		"denied a campaign to people, the command shows the number of these people, and the earlier campaigns that " +
		"had sent to them. With --audit or --config, the command reads the audit (the log of all decisions). Without " +
		"these flags, the command asks the service at --url. With --audit but without --config, the command knows " +
		"the segments of users only if --segments names the location of the segments."
}

// The method Validate rejects invalid values and combinations of flags.
func (c *PressureCommand) Validate() error {
	switch {
	case c.Weeks < 1 || c.Weeks > pressure.MaxWeeks:
		return fmt.Errorf("--weeks: the number of weeks must be 1 to %d, got %d", pressure.MaxWeeks, c.Weeks)
	case c.Max < 1 || c.Max > 1000:
		return fmt.Errorf("--max: the number of campaigns to list must be 1 to 1000, got %d", c.Max)
	case c.Users != "" && c.Segment == "":
		return errors.New("--users requires --segment (segment of the users to write)")
	case c.Users == "" && (c.Segment != "" || c.Limit != ""):
		return errors.New("--segment and --limit require --users (output file for user ids)")
	case c.CSV != "" && c.JSON:
		return errors.New("--csv and --json must not be combined")
	}
	return nil
}

// The method Run prints the number of messages that people received in each week, and the number of people who have
// reached each limit.
func (c *PressureCommand) Run(ctx context.Context, on *terminal.Streams) error {
	if c.Users != "" {
		if err := terminal.CheckTarget(c.Users); err != nil {
			return terminal.Misuse(err)
		}
	}
	count := c.ofAudit
	if c.Audit == "" && c.Config == "" {
		count = c.ofService
	}
	answer, write, err := count(ctx)
	if err != nil {
		return err
	}
	if c.Users != "" {
		if err := terminal.WritePrivateFile(c.Users, write); err != nil {
			return err
		}
		on.Say("wrote %s", c.Users)
	}
	if err := c.show(on, answer); err != nil {
		return err
	}
	if len(answer.Faults) > 0 {
		return terminal.Hinted(terminal.WithStatus(terminal.BadInput, fmt.Errorf(
			"some audit files could not be read: %s",
			strings.Join(answer.Faults, "; "))), "capper audit verify lists all damaged files")
	}
	return nil
}

// ofService requests the counts of messages per person from a service. The second result of ofService is a function
// that writes the ids of the users who have reached the limit.
func (c *PressureCommand) ofService(ctx context.Context) (*api.Pressure, func(io.Writer) error, error) {
	service, err := c.Client()
	if err != nil {
		return nil, nil, err
	}
	q := client.PressureQuery{Weeks: c.Weeks, Channel: c.Channel, Namespace: c.Namespace, Max: c.Max}
	if c.Until.Given() {
		q.Until = c.Until.Instant(time.Now()).Time()
	}
	if c.Users != "" {
		q.AtLimit = &client.PressureAtLimit{Segment: c.Segment, Limit: c.Limit}
	}
	answer, err := service.Pressure(ctx, q)
	if err != nil {
		return nil, nil, c.Hinted(err)
	}
	list := answer.AtLimit
	answer.AtLimit = nil
	return answer, func(to io.Writer) error {
		if list.UsersBitmap == nil {
			return writeLines(to, list.UserIDs)
		}
		return c.writeUsers(to, list.UsersBitmap.Bitmap)
	}, nil
}

// writeUsers writes dense user ids (32-bit numbers) to the file of the flag --users, as a bitmap if the file name ends
// in ".roaring".
func (c *PressureCommand) writeUsers(to io.Writer, users *roaring.Bitmap) error {
	if strings.HasSuffix(c.Users, ".roaring") {
		return writeBitmap(to, users)
	}
	return writeIDs(to, users)
}

func writeLines(to io.Writer, lines []string) error {
	out := bufio.NewWriter(to)
	for _, line := range lines {
		_, _ = out.WriteString(line + "\n") // Flush returns the error of all writes
	}
	return out.Flush()
}

// ofAudit counts messages per person in the records of an audit.
func (c *PressureCommand) ofAudit(ctx context.Context) (*api.Pressure, func(io.Writer) error, error) {
	from, err := c.archive(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg := pressure.Config{Weeks: c.Weeks, Most: c.Max, Widen: c.widening(), Until: capping.InstantOf(time.Now()) + 1}
	if c.Namespace != "" {
		cfg.Namespace = &c.Namespace
	}
	if c.Until.Given() {
		cfg.Until = c.Until.Instant(time.Now())
	}
	if cfg.Policy, err = c.inForce(ctx, from, cfg.Until); err != nil {
		return nil, nil, err
	}
	if c.Channel != "" {
		channel, known := cfg.Policy.Channels[c.Channel]
		if !known {
			return nil, nil, terminal.Misuse(fmt.Errorf("--channel: the configuration has no channel %q", c.Channel))
		}
		cfg.Channel = &channel
	}
	if err := c.live(ctx, from, &cfg); err != nil {
		return nil, nil, err
	}
	if cfg.AtLimit, err = c.atLimit(&cfg); err != nil {
		return nil, nil, err
	}
	result, err := pressure.Of(ctx, from, cfg)
	if err != nil {
		return nil, nil, terminal.WithStatus(terminal.BadInput, err)
	}
	name := archive.ImageName
	if c.Users != "" && !from.IDs().Dense() {
		if name, err = c.Names.names(ctx, &c.Place, from.IDs()); err != nil {
			return nil, nil, err
		}
	}
	return result.Pressure, func(to io.Writer) error {
		if !from.IDs().Dense() {
			var lines []string
			for _, image := range result.Images {
				lines = append(lines, name(image))
			}
			return writeLines(to, lines)
		}
		users := roaring.New()
		if _, err := users.ReadFrom(bytes.NewReader(result.Users.Bytes())); err != nil {
			return err
		}
		return c.writeUsers(to, users)
	}, nil
}

// inForce returns the limits in force: the limits in the configuration that the flags name, or else the limits of the
// latest call in the audit.
func (c *PressureCommand) inForce(ctx context.Context, from *archive.Archive, until capping.Instant) (*capping.Policy,
	error) {
	if c.configured != nil {
		return c.configured.Policy, nil
	}
	version, _, ok, err := pressure.Latest(ctx, from, until)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, terminal.WithStatus(terminal.BadInput, fmt.Errorf(
			"%s: the audit has no calls in the requested time",
			c.Audit))
	}
	policy, err := from.Policy(ctx, version)
	return policy, terminal.WithStatus(terminal.BadInput, err)
}

// The method "live" reads the segments generation in use (published version), if the location of the segments is known.
func (c *PressureCommand) live(ctx context.Context, from *archive.Archive, cfg *pressure.Config) error {
	at, err := c.Names.open(ctx, &c.Place)
	if err != nil || at == nil {
		return err
	}
	g, err := liveGeneration(ctx, at)
	if errors.Is(err, objects.ErrNotFound) {
		return terminal.WithStatus(terminal.BadInput, fmt.Errorf("%s: no segments have been published at this location",
			at.Name()))
	}
	if err == nil {
		err = sameIDs(at, g.Scheme, from.IDs())
	}
	if err != nil {
		return terminal.WithStatus(terminal.BadInput, err)
	}
	cfg.In(g.Snapshot())
	return nil
}

func liveGeneration(ctx context.Context, at objects.Source) (*segments.Generation, error) {
	m, err := segments.ReadLiveManifest(ctx, at)
	if err != nil {
		return nil, err
	}
	return m.ReadBitmaps(ctx, at)
}

// atLimit returns the values of the flags --segment and --limit, which select the users for the output file of the flag
// --users. Without the flag --users, atLimit returns nil.
func (c *PressureCommand) atLimit(cfg *pressure.Config) (*pressure.AtLimit, error) {
	if c.Users == "" {
		return nil, nil
	}
	segment := c.Segment
	if segment == api.NoSegment {
		segment = ""
	} else if cfg.Segments == nil || !slices.Contains(cfg.Segments.Names(), segment) {
		return nil, terminal.Misuse(fmt.Errorf("--segment: the published segments do not include %q", segment))
	}
	if c.Limit != "" && !slices.ContainsFunc(cfg.Policy.Limits(segment), func(l capping.Limit) bool {
		return l.Name == c.Limit && !l.Shadow && l.Max > 0
	}) {
		return nil, terminal.Misuse(fmt.Errorf("--limit: the segment %s has no limit %q", c.Segment, c.Limit))
	}
	return &pressure.AtLimit{Segment: segment, Limit: c.Limit}, nil
}

// The method "show" prints the counts of messages per person, as JSON, as one CSV table, or as all tables.
func (c *PressureCommand) show(on *terminal.Streams, answer *api.Pressure) error {
	switch {
	case c.JSON:
		return terminal.JSON(on.Out, answer)
	case c.CSV != "":
		for _, t := range pressure.Tables(answer, true) {
			if t.Name == c.CSV {
				return writeCSV(on.Data(), &t)
			}
		}
	}
	fmt.Fprintf(on.Out, "Weeks of 7 days to %s. Limits of configuration %s. Segments: %s. %d calls read",
		answer.Weeks[0].To.Format("2006-01-02 15:04 UTC"), answer.ConfigVersion,
		cmp.Or(answer.Generation, "unknown"), answer.Records)
	if !answer.AuditBegins.IsZero() {
		fmt.Fprintf(on.Out, ", the first of %s", answer.AuditBegins.Format("2006-01-02 15:04 UTC"))
	}
	fmt.Fprintln(on.Out, ".")
	if answer.Gaps > 0 {
		fmt.Fprintf(on.Out, "Records are missing at %d places.\n", answer.Gaps)
	}
	for _, t := range pressure.Tables(answer, false) {
		if len(t.Rows) == 0 {
			continue
		}
		fmt.Fprintf(on.Out, "\n%s\n", strings.ToUpper(t.Title))
		for _, row := range t.Rows {
			for i := range row {
				row[i] = terminal.Escape(row[i])
			}
		}
		rows := [][]any{}
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			var cells []any
			for _, cell := range row {
				cells = append(cells, cell)
			}
			rows = append(rows, cells)
		}
		if err := terminal.Table(on.Out, terminal.Left, rows...); err != nil {
			return err
		}
	}
	if answer.More {
		on.Say("more campaigns exist: use a larger --max")
	}
	return nil
}

// writeCSV writes a table as CSV with column names in lower case.
func writeCSV(to io.Writer, t *pressure.Table) error {
	w := csv.NewWriter(to)
	var head []string
	for _, title := range t.Head {
		head = append(head, strings.ReplaceAll(strings.ToLower(title), " ", "_"))
	}
	_ = w.Write(head) // Error returns the error of all writes
	_ = w.WriteAll(t.Rows)
	return w.Error()
}
