package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/cli"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments/ingest/format"
	"capper/internal/terminal"
	"capper/internal/zones"
)

// ImportCommand is the command `capper import FILE…`.
type ImportCommand struct {
	cli.Service
	Files []string `arg:"" placeholder:"FILE" help:"Files with one send in each row, directories of such files, file name patterns, or - for standard input. Format: CSV with a header, TSV, NDJSON or Parquet, plain or compressed with gzip or zstd."`

	Channel         string  `placeholder:"NAME" help:"Channel for all sends whose row in the file names no channel."`
	MessageID       string  `placeholder:"ID" help:"Message id for all sends whose row in the file has no message id. Default: none; the service identifies a send without a message id by the time of the send."`
	Namespace       *string `placeholder:"NAME" help:"Namespace of all sends; the command rejects rows with another namespace. Default: the namespace in each row, or no namespace."`
	UserColumn      string  `placeholder:"NAME" help:"Name of the column with the user ids. Default: the column 'user_id'."`
	AtColumn        string  `placeholder:"NAME" help:"Name of the column with the time of each send. Default: the column 'at'."`
	ChannelColumn   string  `placeholder:"NAME" help:"Name of the column with the channel of each send. Default: the column 'channel', if the file has this column."`
	MessageColumn   string  `placeholder:"NAME" help:"Name of the column with the message id of each send. Default: the column 'message_id', if the file has this column."`
	NamespaceColumn string  `placeholder:"NAME" help:"Name of the column with the namespace of each message. Default: the column 'namespace', if the file has this column."`
	Timezone        string  `placeholder:"ZONE" help:"Time zone, such as Asia/Singapore, for times without a UTC offset. Without this flag, rows with such times are invalid."`
	Format          string  `enum:",csv,tsv,ndjson,parquet" default:"" help:"Format of the files: csv, tsv, ndjson or parquet. Default: the command detects the format from each file's name."`
	FinalNewline    string  `enum:"auto,optional" default:"auto" help:"Whether the last line of a text file must end with a line break: auto (required only in long files) or optional."`
	IDs             string  `name:"ids" enum:",dense,uint64,uuid,text" default:"" help:"Kind of the user ids in the files: dense (32-bit numbers), uint64, uuid or text. The command fails if the service uses another kind. Default: the kind of the service, or dense with --dry-run."`
	MaxBadRows      int64   `placeholder:"N" help:"Maximum number of invalid rows that the command skips. If more rows are invalid, the command imports nothing. Default: 0."`

	DryRun   bool          `help:"Read all files and show the result without importing anything."`
	Verify   bool          `help:"After the import, import all rows a second time, and report sends that the first import had not recorded."`
	Patience time.Duration `default:"5m" help:"Maximum time for retries of sends that the service could not record at first."`
	Batch    int           `default:"10000" help:"Number of sends in one call to the service."`
	Parallel int           `default:"4" help:"Number of calls that the command makes to the service at the same time."`
	TempDir  string        `placeholder:"DIR" type:"existingdir" help:"Directory for temporary files, which the command writes if it must sort more than a million sends. Default: the temporary directory of the system."`
}

// The type report is the output of the import command with --json.
type report struct {
	Files      []string           `json:"files"`
	Rows       int64              `json:"rows"`
	BadRows    int64              `json:"bad_rows"`
	Users      uint64             `json:"users"`
	First      time.Time          `json:"first,omitzero"`
	Last       time.Time          `json:"last,omitzero"`
	Channels   map[string]int64   `json:"channels"`
	Namespaces map[string]int64   `json:"namespaces"`
	Sent       *api.ImportSummary `json:"sent,omitempty"`
	Verified   *api.ImportSummary `json:"verified,omitempty"`

	dense  *roaring.Bitmap
	images distinct
	bad    []string
	empty  []string // files without rows
}

// mostShown is the maximum number of bad rows that the command prints.
const mostShown = 5

// The method Run imports sends that another program made. A second run with the same files changes nothing.
func (c *ImportCommand) Run(ctx context.Context, on *terminal.Streams) (err error) {
	options, err := c.options()
	if err != nil {
		return terminal.Misuse(err)
	}
	service, err := c.Client()
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := c.ask(ctx, on, service, options); err != nil {
			return err
		}
	}
	rows := &sorter{dir: c.TempDir}
	defer func() { err = errors.Join(err, rows.close()) }()
	found, err := c.read(ctx, on, options, rows)
	if err != nil {
		return err
	}
	if !c.DryRun {
		if err := c.send(ctx, on, service, found, rows); err != nil {
			return err
		}
	}
	if err := c.print(on, found); err != nil {
		return err
	}
	return found.fault()
}

// keyRule is a hint for errors: it describes the API key that an import needs.
const keyRule = "the key in " + cli.KeyVariable +
	" needs the scopes read and admin; a key with a namespace cannot have admin"

// If the clocks of the service and of this machine differ by more than farClock, the command prints a warning.
const farClock = 10 * time.Second

// The method "ask" reads the channels and the clock of the service: the command rejects rows with unknown channels or
// future times.
func (c *ImportCommand) ask(
	ctx context.Context,
	on *terminal.Streams,
	service *client.Client,
	o *format.SendOptions,
) error {
	scheme, err := c.Scheme(ctx, service)
	if err != nil {
		return err
	}
	if c.IDs != "" && c.IDs != scheme.Kind().String() {
		return terminal.Misuse(fmt.Errorf("--ids must be %s, the kind of user ids that the service uses, got %s",
			scheme.Kind(), c.IDs))
	}
	o.Scheme = scheme
	limits, err := service.Limits(ctx)
	if client.HasCode(err, client.CodeForbidden) {
		return terminal.Hinted(err, keyRule)
	}
	if err != nil {
		return c.Hinted(err)
	}
	o.Channels = map[string]bool{}
	for name := range limits.Channels {
		o.Channels[name] = true
	}
	if c.Channel != "" && !o.Channels[c.Channel] {
		return terminal.Misuse(fmt.Errorf("--channel: the channel %q is not configured", c.Channel))
	}
	status, err := service.Status(ctx)
	if err != nil {
		return c.Hinted(err)
	}
	if apart := status.Time.Sub(o.Now).Round(time.Second); apart.Abs() > farClock {
		on.Warn(fmt.Sprintf("the clock of the service differs from this machine's by %s; times are compared with "+
			"the clock of the service, %s", apart.Abs(), status.Time.Format(time.RFC3339)))
	}
	o.Now = status.Time
	return nil
}

// The method "options" returns the options for reading the files of sends, such as the kind of user ids.
func (c *ImportCommand) options() (*format.SendOptions, error) {
	if c.Batch < 1 || c.Parallel < 1 || c.MaxBadRows < 0 {
		return nil, errors.New("--batch and --parallel must be at least 1, and --max-bad-rows at least 0")
	}
	o := &format.SendOptions{
		Columns: format.Columns{
			User: c.UserColumn, At: c.AtColumn, Channel: c.ChannelColumn, MessageID: c.MessageColumn,
			Namespace: c.NamespaceColumn,
		},
		Namespace: c.Namespace,
		Format:    c.Format, Channel: c.Channel, MessageID: c.MessageID, FinalNewline: c.FinalNewline != "optional",
		Now: time.Now(),
	}
	if c.Namespace != nil && *c.Namespace != "" && !capping.IsName(*c.Namespace) {
		return nil, fmt.Errorf("--namespace: "+capping.NameRule, *c.Namespace)
	}
	if c.IDs != "" {
		kind, err := ids.ParseKind(c.IDs)
		if err != nil {
			return nil, fmt.Errorf("--ids: %w", err)
		}
		o.Scheme = ids.New(kind, ids.Key{}) // the real key follows in ask, and a dry run needs none
	}
	if c.Timezone == "" {
		return o, nil
	}
	zone, err := zones.Load(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("--timezone: %w", err)
	}
	o.Zone = zone
	return o, nil
}

// The method "read" reads all files of sends, and adds the rows to the sorter.
func (c *ImportCommand) read(
	ctx context.Context,
	on *terminal.Streams,
	o *format.SendOptions,
	rows *sorter,
) (*report, error) {
	r := &report{Channels: map[string]int64{}, Namespaces: map[string]int64{}, dense: roaring.New()}
	files, err := c.expand(ctx)
	if err != nil {
		return nil, terminal.WithStatus(terminal.BadInput, err)
	}
	shown := terminal.NewProgress(on, terminal.Bytes)
	defer shown.Stop()
	shown.Step("read", 0)
	r.Files = files
	for _, name := range files {
		var from format.Opener = objects.LocalFiles{}
		if name == format.Stdin {
			from = format.StandardInput{Reader: on.In}
		}
		before := r.Rows + r.BadRows
		err := format.ReadSends(ctx, from, name, *o, shown.Add, func(row format.SendRow, bad *format.RowError) error {
			if bad != nil {
				return r.addBad(name, bad)
			}
			r.add(row)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			return rows.add(row)
		})
		if errors.As(err, new(*format.NoColumnError)) {
			err = terminal.Hinted(err, "--user-column, --at-column, --channel-column, --message-column and "+
				"--namespace-column name the columns of the file")
		}
		if err != nil {
			return nil, terminal.WithStatus(terminal.BadInput, err)
		}
		if r.Rows+r.BadRows == before {
			r.empty = append(r.empty, name)
		}
	}
	if r.BadRows > c.MaxBadRows {
		return nil, terminal.Hinted(terminal.WithStatus(terminal.BadInput,
			fmt.Errorf("%d of %d rows are not valid sends, for example:\n  %s",
				r.BadRows, r.BadRows+r.Rows, strings.Join(r.bad, "\n  "))),
			c.remedy())
	}
	if r.Rows == 0 {
		return nil, terminal.Hinted(terminal.WithStatus(terminal.BadInput, r.nothing()),
			"is the export incomplete, or is it from another day?")
	}
	if len(r.empty) > 0 {
		on.Warn(fmt.Sprintf("%d of %d files have no rows, such as %s", len(r.empty), len(files), r.empty[0]))
	}
	r.Users = r.dense.GetCardinality() + r.images.count()
	return r, nil
}

// The method "remedy" returns advice about bad rows in the files of sends.
func (c *ImportCommand) remedy() string {
	advice := "nothing was imported; correct the rows, or skip them with --max-bad-rows"
	if c.DryRun && c.IDs == "" {
		advice += "; if the user ids are no dense ids, name their kind with --ids"
	}
	return advice
}

// The method "nothing" returns the error for files that contain no send.
func (r *report) nothing() error {
	switch {
	case r.BadRows > 0:
		return fmt.Errorf("no row is a valid send: all %d rows are invalid, for example:\n  %s", r.BadRows,
			strings.Join(r.bad, "\n  "))
	case len(r.Files) == 1:
		return fmt.Errorf("%s: the file contains no send", r.Files[0])
	}
	return fmt.Errorf("the %d files, such as %s, contain no send", len(r.Files), r.Files[0])
}

// The method "expand" returns the files that the arguments of the command name, directly or by a pattern.
func (c *ImportCommand) expand(ctx context.Context) (files []string, err error) {
	for _, name := range c.Files {
		if name == format.Stdin {
			files = append(files, name)
			continue
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			name = filepath.Join(objects.Literal(name), "*")
		}
		found, err := objects.LocalFiles{}.Glob(ctx, name)
		if err != nil {
			return nil, err
		}
		if len(found.Names) == 0 {
			return nil, fmt.Errorf("no file matches %q", name)
		}
		files = append(files, found.Names...)
	}
	return files, nil
}

func (r *report) add(row format.SendRow) {
	at := time.UnixMilli(row.At).UTC()
	if r.Rows == 0 || at.Before(r.First) {
		r.First = at
	}
	if at.After(r.Last) {
		r.Last = at
	}
	r.Rows++
	r.Channels[row.Channel]++
	r.Namespaces[row.Namespace]++
	if row.ID == "" {
		r.dense.Add(capping.Dense(row.User))
	} else {
		r.images.add(uint64(row.User))
	}
}

func (r *report) addBad(file string, bad *format.RowError) error {
	r.BadRows++
	if len(r.bad) < mostShown {
		r.bad = append(r.bad, file+":"+bad.Error())
	}
	return nil
}

// The method "send" imports all rows into the service. With the flag --verify, the method then imports the same rows a
// second time, to check that the service has recorded them.
func (c *ImportCommand) send(
	ctx context.Context, on *terminal.Streams, service *client.Client, r *report, rows *sorter,
) error {
	shown := terminal.NewProgress(on, terminal.Lines)
	defer shown.Stop()
	pass := func(step string) (*api.ImportSummary, error) {
		shown.Step(step, r.Rows)
		s := &sender{api: service, patience: c.Patience, parallel: c.Parallel, batch: c.Batch}
		s.reach = func(sum *api.ImportSummary) {
			shown.Reach(int64(sum.Requested), fmt.Sprintf("%d added", sum.Added))
		}
		sum, err := s.all(ctx, rows)
		if err != nil {
			return nil, c.unsent(err)
		}
		return &sum, nil
	}
	var err error
	if r.Sent, err = pass("send"); err != nil || !c.Verify {
		return err
	}
	r.Verified, err = pass("verify")
	return err
}

// The method "unsent" adds advice to the error of an unfinished import, for example "run the command again".
func (c *ImportCommand) unsent(err error) error {
	if refused := new(refusedSend); errors.As(err, &refused) {
		return terminal.Hinted(err, "all sends before this row are recorded, and none after it; correct the row "+
			"(or, if its time is wrong, the clocks of the service's instances) and run the same command again; "+
			"repeating an import is safe")
	}
	if client.HasCode(err, client.CodeForbidden) {
		return terminal.Hinted(err, keyRule)
	}
	hinted := c.HintedAdmin(err)
	if !client.Passing(err) {
		return hinted
	}
	return terminal.Hinted(hinted, "run the same command again; repeating an import is safe")
}

// The method "print" prints the report about the import.
func (c *ImportCommand) print(on *terminal.Streams, r *report) error {
	for _, bad := range r.bad {
		on.Warn("left out: " + bad)
	}
	if c.JSON {
		return terminal.JSON(on.Out, r)
	}
	table := [][]any{{"sends", r.Rows, fmt.Sprintf("of %d users", r.Users)},
		{"first", r.First.Format(time.RFC3339)}, {"last", r.Last.Format(time.RFC3339)}}
	for _, channel := range sorted(r.Channels) {
		table = append(table, []any{"channel " + cmp.Or(channel, "(none)"), r.Channels[channel]})
	}
	if r.Namespaces[""] < r.Rows {
		for _, namespace := range sorted(r.Namespaces) {
			table = append(table, []any{"namespace " + cmp.Or(namespace, "(none)"), r.Namespaces[namespace]})
		}
	}
	if r.BadRows > 0 {
		table = append(table, []any{"bad rows", r.BadRows, "left out"})
	}
	if r.Sent != nil {
		table = append(table, []any{"added", r.Sent.Added}, []any{"known", r.Sent.Known, "were there already"},
			[]any{"expired", r.Sent.Expired, "older than the longest limit"},
			[]any{"unavailable", r.Sent.Unavailable})
	}
	if r.Verified != nil {
		table = append(table, []any{"verified", r.Verified.Known + r.Verified.Expired})
	}
	return terminal.Table(on.Out, terminal.Left, table...)
}

// The method "fault" returns the error with which `capper import` ends if rows were not imported.
func (r *report) fault() error {
	for _, sum := range []*api.ImportSummary{r.Sent, r.Verified} {
		if sum != nil && sum.Unavailable > 0 {
			return terminal.Hinted(terminal.WithStatus(terminal.Undecided,
				fmt.Errorf("%d sends could not be checked because the store was unavailable", sum.Unavailable)),
				cli.StatusSays+"; then run the same command again; repeating an import is safe")
		}
	}
	if r.Verified != nil && r.Verified.Added > 0 {
		return terminal.WithStatus(terminal.Findings, lost(r.Verified.Added))
	}
	return nil
}

func sorted(counts map[string]int64) []string { return slices.Sorted(maps.Keys(counts)) }
