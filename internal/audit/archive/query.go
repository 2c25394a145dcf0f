package archive

import (
	"slices"

	"capper/internal/audit"
	"capper/internal/capping"
)

// A Query selects audit records. The zero value selects all records.
type Query struct {
	Since, Until capping.Instant  // bounds of At (Until itself is outside); 0: no bound
	Message      *capping.Message // nil: any
	Channel      capping.Channel  // 0: all channels; a release of all channels matches every channel
	User         *capping.UserID  // selects records that contain this user; nil: all records
	Kinds        []audit.Kind     // empty: all kinds
}

// The method "wants" reports whether the record matches all conditions of the query, apart from the user.
func (q *Query) wants(r *audit.Record) bool {
	return r.At >= q.Since && (q.Until == 0 || r.At < q.Until) &&
		(q.Message == nil || *q.Message == r.Message) &&
		(q.Channel == 0 || q.Channel == r.Channel || r.Kind == audit.Release && r.Channel == 0) &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, r.Kind))
}

// The method "has" reports whether the record contains the user whom the query selects.
func (q *Query) has(r *audit.Record) bool {
	return q.User == nil || GroupOf(r, *q.User) != nil
}

// GroupOf returns the group of an audit record that contains the user, or nil if no group does.
func GroupOf(r *audit.Record, user capping.UserID) *audit.Group {
	for i := range r.Groups {
		if r.Groups[i].Has(user) {
			return &r.Groups[i]
		}
	}
	return nil
}

// mayHold reports whether an audit file may contain records that the query selects, according to the file's index
// entry.
func (q *Query) mayHold(e *Entry) bool {
	if e.Records == 0 || e.To < q.Since || q.Until != 0 && e.From >= q.Until {
		return false
	}
	if q.Message != nil && !e.ManyMessages {
		if _, found := slices.BinarySearchFunc(e.tokens, q.Message.Token(), compareTokens); !found {
			return false
		}
	}
	return len(q.Kinds) == 0 || slices.ContainsFunc(q.Kinds, func(k audit.Kind) bool { return e.Kinds[k.String()] > 0 })
}

// daySlack is the maximum number of days between the day in the key of an audit file and the time of a record in the
// file. Two days are enough, because an instance writes one audit file for hours at most, and a call takes minutes at
// most.
const daySlack = 2

// mayBeOf reports whether the audit files of a day may contain records that the query selects.
func (q *Query) mayBeOf(day string) bool {
	return (q.Since == 0 || day >= audit.Day(q.Since.Time().AddDate(0, 0, -daySlack))) &&
		(q.Until == 0 || day <= audit.Day(q.Until.Time().AddDate(0, 0, 1)))
}
