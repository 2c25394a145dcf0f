package redisstore

import (
	"context"
	"math"
	"slices"
	"strconv"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// These constants are the maximum numbers of index entries that the search for one page of messages reads. If a search
// reaches the maximum number of entries, the page ends, and the next page continues at this position.
const (
	mostListed = 200_000
	mostAsked  = 20_000  // when the search also reads the decision counts of each entry
	mostTitled = 100_000 // when the search also reads the title of each entry
)

// An entry is one message in an index of messages, with its score in this index.
type entry struct {
	messages.Candidate
	score int64
}

// A shelf is one Redis sorted set: the part of an index in one partition. A shelf (Redis sorted set) also holds the
// progress of a search in this set.
type shelf struct {
	partition int
	key       string
	period    int64 // number of the period, in an index by asked users
	read      int   // number of entries read so far
	score     int64 // score of the last read entry; all further entries have this or a lower score
	done      bool
}

// The type "browse" is a search through the indexes of messages, from the highest score downwards.
type browse struct {
	c         *messageCounts
	q         *messages.Query
	order     messages.Order // the order of the index
	shelves   []shelf
	low, high int64
	wanted    int // stop after this many found messages, if no unread message can precede them
	most      int // stop after this many index entries
	found     []messages.Candidate
}

// ListMessages returns a page of a list of messages; see messages.Store.
func (c *messageCounts) ListMessages(ctx context.Context, q messages.Query) (messages.Page, error) {
	listed, next, err := c.list(ctx, &q)
	if err != nil {
		return messages.Page{}, err
	}
	var wanted []capping.Message
	seen := map[capping.Message]bool{}
	for _, one := range listed {
		if !seen[one.Message] {
			seen[one.Message] = true
			wanted = append(wanted, one.Message)
		}
	}
	read, err := c.readAll(ctx, wanted)
	if err != nil {
		return messages.Page{}, err
	}
	page := messages.Page{Next: next}
	for _, one := range listed {
		if campaign, there := read[one.Key]; there { // otherwise the message expired meanwhile
			page.Found = append(page.Found, campaign)
		}
	}
	return page, nil
}

// The method "list" returns the messages of one page, and the position at which the next page begins.
func (c *messageCounts) list(ctx context.Context, q *messages.Query) ([]messages.Candidate, *messages.Position, error) {
	if q.Order == messages.ByAsked || q.AtLeast > 0 {
		if err := c.mend(ctx); err != nil {
			return nil, nil, err
		}
	}
	if q.Order == messages.ByLast && q.AtLeast > 0 {
		// Few messages have many users, but many messages with few users may have later calls.
		large := *q
		large.Order, large.After = messages.ByAsked, nil
		found, next, err := c.browse(ctx, &large, mostAsked)
		if err != nil {
			return nil, nil, err
		}
		if next == nil {
			found = slices.DeleteFunc(found, func(one messages.Candidate) bool { return !q.Behind(one.At(q.Order)) })
			page, next := q.Cut(q.Order.First(found, q.Max+1))
			return page, next, nil
		}
	}
	found, next, err := c.browse(ctx, q, q.Max)
	return found, next, err
}

// The method "browse" returns messages in the order of the query, and the position at which the next page begins. The
// argument "most" of the method "browse" is the maximum number of returned messages.
func (c *messageCounts) browse(ctx context.Context, q *messages.Query, most int) ([]messages.Candidate,
	*messages.Position, error) {
	b := browse{c: c, q: q, order: q.Order, low: int64(q.Since), high: math.MaxInt64, wanted: most, most: mostListed}
	if q.Until > 0 {
		b.high = int64(q.Until) - 1
	}
	if q.Order == messages.ByAsked {
		b.low, b.high, b.most = q.AtLeast, math.MaxInt64, max(mostAsked, 2*most)*len(c.config.Prefixes)
		b.shelves = c.sizes(q)
	} else {
		for p, prefix := range c.config.Prefixes {
			b.shelves = append(b.shelves, shelf{partition: p, key: script.IndexKey(prefix)})
		}
		if q.AtLeast > 0 {
			b.most = mostAsked
		}
	}
	if q.Part != "" {
		b.most = min(b.most, mostTitled)
	}
	if q.After != nil {
		b.high = min(b.high, q.After.Value)
	}
	reached, err := b.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	cut := *q
	cut.Max = most
	found, next := cut.Cut(q.Order.First(b.found, most+1))
	if next == nil {
		next = reached
	}
	return found, next, nil
}

// The method "sizes" returns indexes that sort messages by the number of users in their calls. Each index belongs to
// one period. The result of the method "sizes" contains only periods that may have messages for the query.
func (c *messageCounts) sizes(q *messages.Query) (list []shelf) {
	now := capping.InstantOf(c.config.Clock())
	first := script.Period(max(q.Since, now-capping.Instant(messages.MaxKeep.Milliseconds()), 0))
	last := script.Period(now + capping.Instant(c.config.ClockSkew.Milliseconds()))
	if q.Until > 0 {
		last = min(last, script.Period(q.Until))
	}
	for period := first; period <= last; period++ {
		for p, prefix := range c.config.Prefixes {
			list = append(list, shelf{partition: p, key: script.SizesKey(prefix, period), period: period})
		}
	}
	return list
}

// The method "read" reads the sorted sets of the index piece by piece, until no unread entry can belong to the page. If
// the maximum number of entries stops the method "read" earlier, the result "reached" is the position of the stop.
// Otherwise, "reached" is nil.
func (b *browse) read(ctx context.Context) (reached *messages.Position, err error) {
	for i := range b.shelves {
		b.shelves[i].score = math.MaxInt64
	}
	piece := max(16, 2*(b.wanted+1)/max(1, len(b.shelves)))
	for looked := 0; ; {
		asked, reads := b.pieces(piece)
		if len(reads) == 0 {
			return nil, nil
		}
		if looked > b.most {
			return b.reached(asked), nil
		}
		looked += len(reads) * piece
		if err := b.c.do(ctx, reads); err != nil {
			return nil, err
		}
		var entries []entry
		var of []*shelf
		for i, place := range asked {
			s := &b.shelves[place]
			more, err := s.take(reads[i].list, piece)
			if err != nil {
				return nil, err
			}
			for _, one := range more {
				entries, of = append(entries, one), append(of, s)
			}
		}
		if err := b.add(ctx, entries, of); err != nil {
			return nil, err
		}
		slices.SortFunc(b.found, func(x, y messages.Candidate) int {
			return b.order.Compare(x.At(b.order), y.At(b.order))
		})
		b.found = slices.CompactFunc(b.found, func(x, y messages.Candidate) bool { return x.Key == y.Key })
	}
}

// The method "reached" returns the lowest score to which all sorted sets of the index were read. The method "reached"
// drops the found messages at or below the returned score, because the next page finds them again.
func (b *browse) reached(undone []int) *messages.Position {
	score := int64(0)
	for _, place := range undone {
		score = max(score, b.shelves[place].score)
	}
	b.found = slices.DeleteFunc(b.found, func(one messages.Candidate) bool { return one.At(b.order).Value <= score })
	return &messages.Position{Value: score}
}

// The method "pieces" returns commands that read further entries of the sorted sets that may still have a wanted
// message.
func (b *browse) pieces(piece int) (asked []int, reads []reading) {
	for i, s := range b.shelves {
		if s.done || len(b.found) > b.wanted && s.score < b.found[b.wanted].At(b.order).Value {
			continue
		}
		high := "+inf"
		if b.high < math.MaxInt64 {
			high = strconv.FormatInt(b.high, 10)
		}
		asked = append(asked, i)
		reads = append(reads, reading{readOperation{args: []string{
			"zrevrangebyscore", s.key, high, strconv.FormatInt(b.low, 10), "withscores",
			"limit", strconv.Itoa(s.read), strconv.Itoa(piece),
		}}, s.partition})
	}
	return asked, reads
}

// The method "take" decodes the entries of a sorted set in the reply to one command.
func (s *shelf) take(list []string, piece int) (entries []entry, err error) {
	s.read += len(list) / 2
	s.done = len(list) < 2*piece
	for ; len(list) >= 2; list = list[2:] {
		score, err := strconv.ParseFloat(list[1], 64)
		if err != nil || len(list[0]) < 2 {
			return nil, script.ErrReply
		}
		s.score = int64(score)
		one := entry{score: s.score}
		one.Key = messages.Key{Message: capping.MessageOf(list[0][1:]), Channel: capping.Channel(list[0][0])}
		entries = append(entries, one)
	}
	return entries, nil
}

// The method "add" appends the entries that match the query to the found messages. The argument "of" holds, for each
// element of "entries", the shelf (sorted set) that contains the entry.
func (b *browse) add(ctx context.Context, entries []entry, of []*shelf) error {
	var wanted []entry
	var shelves []*shelf
	for i, one := range entries {
		if b.q.Wants(one.Key) && b.q.Behind(messages.Position{Value: one.score, Key: one.Key}) {
			wanted, shelves = append(wanted, one), append(shelves, of[i])
		}
	}
	if b.q.Part != "" {
		var err error
		if wanted, shelves, err = b.c.named(ctx, b.q, wanted, shelves); err != nil {
			return err
		}
	}
	if b.order == messages.ByLast && b.q.AtLeast <= 0 {
		for _, one := range wanted {
			one.Last = capping.Instant(one.score)
			if b.q.Within(one.Last, 0) {
				b.found = append(b.found, one.Candidate)
			}
		}
		return nil
	}
	field := script.AskedField
	if b.order == messages.ByAsked {
		field = script.LastField
	}
	values, err := b.c.answered(ctx, wanted, field)
	if err != nil {
		return err
	}
	for i, one := range wanted {
		if b.order == messages.ByLast {
			one.Last, one.Asked = capping.Instant(one.score), values[i]
		} else {
			one.Last, one.Asked = capping.Instant(values[i]), one.score
			if one.Last == 0 || script.Period(one.Last) != shelves[i].period {
				continue // expired, or called again since then: the index of a later period has the message
			}
		}
		if b.q.Within(one.Last, one.Asked) {
			b.found = append(b.found, one.Candidate)
		}
	}
	return nil
}

// The method "answered" reads one number from the decision counts of each message. If the number of a message is
// missing, "answered" returns 0 for the message.
func (c *messageCounts) answered(ctx context.Context, list []entry, field func(capping.Channel) string) ([]int64,
	error) {
	reads, partitions := make([]single, len(list)), make([]int, len(list))
	for i, one := range list {
		t := one.Message.Token()
		reads[i].args = []string{"hget", c.answerKeys(t, 0).Answers, field(one.Channel)}
		partitions[i] = c.config.Partition(t)
	}
	if err := c.each(ctx, reads, partitions); err != nil {
		return nil, err
	}
	values := make([]int64, len(list))
	for i := range reads {
		if reads[i].null {
			continue
		}
		n, err := strconv.ParseInt(reads[i].reply, 10, 64)
		if err != nil {
			return nil, script.ErrReply
		}
		values[i] = n
	}
	return values, nil
}

// The method "each" runs several commands; commands[i] runs in the partition partitions[i].
func (c *messageCounts) each(ctx context.Context, commands []single, partitions []int) error {
	if len(commands) == 0 {
		return nil
	}
	return c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "the counts of messages are"
		for i := range commands {
			r.Add(&commands[i], partitions[i])
		}
		r.Do(ctx)
		return r
	})
}
