package server

import (
	"context"
	"slices"

	"capper/client/api"
	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/server/wire"
)

// recordedMessage holds what the audit contains about a message on one channel: counts of calls and outcomes of
// users.
type recordedMessage struct {
	outcomes // nil: no record has users
	messages.Counts
	since capping.Instant // time of the first record
}

// The method Recorded reads from the audit the counts and users of a message, separately for each channel. The method
// Recorded also returns faults, which name the audit files that could not be read.
func (r *auditReader) Recorded(ctx context.Context, message capping.Message) (
	found map[capping.Channel]*recordedMessage, faults []string, err error) {
	if r.Records == nil {
		return nil, nil, noAudit()
	}
	found = map[capping.Channel]*recordedMessage{}
	q := archive.Query{Message: &message, Kinds: []audit.Kind{audit.Filter, audit.Release}}
	for record, err := range r.Records.Records(ctx, q) {
		switch {
		case err != nil && !tolerable(err):
			return nil, nil, unreadable(err)
		case err != nil:
			faults = addFault(faults, err)
		case record.Kind == audit.Release && record.Channel == 0:
			for _, one := range found {
				one.add(record)
			}
		default:
			one := found[record.Channel]
			if one == nil {
				one = newRecorded(record)
				found[record.Channel] = one
			}
			one.add(record)
		}
	}
	return found, faults, nil
}

func newRecorded(first *audit.Record) *recordedMessage {
	return &recordedMessage{Counts: messages.Counts{Key: messages.Key{Message: first.Message, Channel: first.Channel}},
		since: first.At}
}

// The method add adds the users and the counts of an audit record to the message.
func (r *recordedMessage) add(record *audit.Record) {
	if r.outcomes == nil && len(record.Groups) > 0 {
		r.outcomes = userOutcomes{}
		if record.Groups[0].Users == nil {
			r.outcomes = &imageOutcomes{of: map[capping.UserID]uint16{}}
		}
	}
	if r.outcomes != nil {
		r.take(record)
	}
	if record.Kind == audit.Filter {
		r.Answers.Add(answersOf(record))
	}
	for i := range record.Groups {
		switch g := &record.Groups[i]; {
		case g.Outcome == audit.Allowed:
			r.Recorded += int64(g.Count())
		case g.Outcome == audit.Released && record.Channel != 0: // a release of all channels is not counted here
			r.Released += int64(g.Count())
		}
	}
}

// answersOf counts the decisions in the audit record of a call.
func answersOf(r *audit.Record) *messages.Answers {
	a := new(messages.Answers)
	a.AddCall(r.At, r.Config)
	for i := range r.Groups {
		g, users := &r.Groups[i], int64(r.Groups[i].Count())
		a.Asked += users
		switch g.Outcome {
		case audit.Allowed:
			a.Allowed += users
		case audit.Replayed:
			a.Allowed += users
			a.Replayed += users
		case audit.Unavailable:
			a.Unavailable += users
		case audit.Denied:
			a.Add(&messages.Answers{Denied: map[string]int64{g.Limit: users}})
			if g.Set != "" {
				a.Add(&messages.Answers{Suppressed: map[string]int64{g.Set: users}})
			}
		}
	}
	for _, s := range r.Segments {
		a.Add(&messages.Answers{Segments: map[string]messages.SegmentAnswers{wire.SegmentName(s.Name): {
			Asked: int64(s.Requested), Allowed: int64(s.Allowed), Denied: int64(s.Denied)}}})
	}
	for _, s := range r.Shadow {
		a.Add(&messages.Answers{Shadow: map[string]int64{s.Name: int64(s.Users)}})
	}
	return a
}

// The method "users" counts the distinct users of a message by their latest outcome, and by their segments in the
// generation "of".
func (r *recordedMessage) users(of capping.Segments) *api.MessageUsers {
	found := &api.MessageUsers{Denied: map[string]int64{}, Since: r.since.Time()}
	if r.outcomes == nil { // each call was for an audience without users
		return found
	}
	segments := newMessageSegments(of)
	r.each(func(o userOutcome, users []capping.UserID) {
		n := int64(len(users))
		found.Asked += n
		switch o.kind {
		case audit.Allowed:
			found.Allowed += n
		case audit.Released:
			found.Released += n
		case audit.Denied:
			found.Denied[o.limit] += n
			if o.set != "" {
				if found.Suppressed == nil {
					found.Suppressed = map[string]int64{}
				}
				found.Suppressed[o.set] += n
			}
		default:
			found.Unavailable += n
		}
		segments.add(o.kind, users)
	})
	found.Generation, found.Segments = of.Generation(), segments.named()
	return found
}

// messageSegments counts the users of a message by their segments in one published generation of segments.
type messageSegments struct {
	of      capping.Segments
	numbers []uint32
	codes   []uint8
	byCode  []api.MessageSegmentUsers // index 0: no segment
}

func newMessageSegments(of capping.Segments) *messageSegments {
	return &messageSegments{of: of, byCode: make([]api.MessageSegmentUsers, len(of.Names())+1)}
}

// The method add adds the users with a certain outcome to the counts of their segments.
func (s *messageSegments) add(kind audit.Outcome, users []capping.UserID) {
	n := len(users)
	s.numbers, s.codes = slices.Grow(s.numbers[:0], n)[:n], slices.Grow(s.codes[:0], n)[:n]
	s.of.Numbers(users, s.numbers)
	s.of.Lookup(s.numbers, s.codes)
	for _, code := range s.codes {
		one := &s.byCode[code]
		one.Asked++
		switch kind {
		case audit.Allowed:
			one.Allowed++
		case audit.Released:
			one.Released++
		case audit.Denied:
			one.Denied++
		default:
			one.Unavailable++
		}
	}
}

// The method "named" returns, by segment name, the counts of those segments that have users of the message.
func (s *messageSegments) named() map[string]api.MessageSegmentUsers {
	found := map[string]api.MessageSegmentUsers{}
	for code, users := range s.byCode {
		switch {
		case users.Asked == 0:
		case code == 0:
			found[api.NoSegment] = users
		default:
			found[s.of.Names()[code-1]] = users
		}
	}
	return found
}
