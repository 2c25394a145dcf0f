package archive

import (
	"fmt"
	"io"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/ids"
)

// NDJSON and Parquet are the output formats in which capper can export audit records.
const (
	NDJSON  = "ndjson"
	Parquet = "parquet"
)

// Rows is a writer that exports audit records, with a row for each user of each record. A Rows is not safe for
// concurrent use.
type Rows interface {
	// Add writes a row for each user of a record. The argument "channel" is the name of the record's channel.
	Add(r *audit.Record, channel string) error
	// Rows returns the number of rows that Add has written.
	Rows() int64
	// Close writes the buffered rows. Close does not close the underlying writer.
	Close() error
}

// NewWriter returns a writer that exports records with dense ids (32-bit numbers) in the given format.
func NewWriter(format string, to io.Writer) (Rows, error) {
	switch format {
	case NDJSON:
		return newLines(to), nil
	case Parquet:
		return newTable(to, func(user capping.UserID) int64 { return int64(user) }), nil
	}
	return nil, fmt.Errorf("unknown export format %q: must be %s or %s", format, NDJSON, Parquet)
}

// A Name is a function that returns the text for a user in an export, for user ids that are not dense 32-bit numbers.
type Name func(user capping.UserID) string

// ImageName returns the text for a user whose id is unknown. The text contains the id image (64-bit hash of the id) in
// place of the id.
func ImageName(user capping.UserID) string { return ids.ImageName(uint64(user)) }

// NewNamedWriter returns a writer that exports records with user ids that are not dense 32-bit numbers, in the given
// format.
func NewNamedWriter(format string, to io.Writer, name Name) (Rows, error) {
	w, err := NewWriter(format, to)
	if err != nil {
		return nil, err
	}
	if l, ok := w.(*ndjsonRows); ok {
		l.name = name
		return l, nil
	}
	return newTable(to, func(user capping.UserID) string { return name(user) }), nil
}

// A Row is a row of an audit export: the outcome of one call for one user with a dense id (32-bit number).
type Row = row[int64]

// NamedRow is a row of an audit export: the outcome of one call for one user, whose id is a text.
type NamedRow = row[string]

type row[ID int64 | string] struct {
	UserID     ID     `json:"user_id" parquet:"user_id,snappy"`
	TimeMS     int64  `json:"-" parquet:"time,timestamp(millisecond),snappy"`
	Time       string `json:"time" parquet:"-"` // RFC 3339, of the call
	TookMS     int64  `json:"took_ms" parquet:"took_ms,snappy"`
	Kind       string `json:"kind" parquet:"kind,dict,snappy"` // filter, release or set_change
	MessageID  string `json:"message_id" parquet:"message_id,dict,snappy"`
	Namespace  string `json:"namespace" parquet:"namespace,dict,snappy"`
	Channel    string `json:"channel" parquet:"channel,dict,snappy"`
	Outcome    string `json:"outcome" parquet:"outcome,dict,snappy"`
	Limit      string `json:"limit" parquet:"limit,dict,snappy"` // that denied, or suppressed, holdout, quiet
	Set        string `json:"set" parquet:"set,dict,snappy"`     // the set that suppresses, or the changed set
	Exempt     bool   `json:"exempt" parquet:"exempt,snappy"`
	Client     string `json:"client" parquet:"client,dict,snappy"`
	KeyID      string `json:"key_id" parquet:"key_id,dict,snappy"`
	Generation string `json:"generation" parquet:"generation,dict,snappy"`
	Config     string `json:"config_version" parquet:"config_version,dict,snappy"`
	Instance   string `json:"instance" parquet:"instance,dict,snappy"`
	Sequence   int64  `json:"sequence" parquet:"sequence,snappy"`
	// At and RequestID are set only for changes of sets. At is the time (RFC 3339) at which the change takes effect,
	// and RequestID is the id of the call. Parquet files do not have these columns.
	At        string `json:"at,omitempty" parquet:"-"`
	RequestID string `json:"request_id,omitempty" parquet:"-"`
}

// The constant milliseconds is the time layout of RFC 3339 with milliseconds.
const milliseconds = "2006-01-02T15:04:05.000Z07:00"

// RowOf returns the export row for all users of a group of an audit record, without the user id, which the caller
// adds.
func RowOf(r *audit.Record, g *audit.Group, channel string) Row { return rowOf[int64](r, g, channel) }

// NamedRowOf returns the export row for one user of a group of an audit record, with the text of the user's id.
func NamedRowOf(r *audit.Record, g *audit.Group, channel, user string) NamedRow {
	row := rowOf[string](r, g, channel)
	row.UserID = user
	return row
}

func rowOf[ID int64 | string](r *audit.Record, g *audit.Group, channel string) row[ID] {
	at := r.At.Time()
	row := row[ID]{
		TimeMS: at.UnixMilli(), Time: at.Format(milliseconds), TookMS: r.Took.Milliseconds(),
		Kind:      r.Kind.String(),
		MessageID: r.Message.ID, Namespace: r.Message.Namespace, Channel: channel, Outcome: g.Outcome.String(),
		Limit: g.Limit, Set: g.Set,
		Exempt: r.Exempt, Client: r.Client, KeyID: r.Key, Generation: r.Generation, Config: r.Config,
		Instance: r.Instance, Sequence: int64(r.Sequence),
	}
	if c := r.Change; c != nil {
		row.Set, row.At, row.RequestID = c.Set, c.At.Time().Format(milliseconds), c.RequestID
	}
	return row
}
