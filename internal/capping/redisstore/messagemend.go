package redisstore

import (
	"context"
	"strconv"

	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// The type "mended" holds the progress of the method "mend", which adds old campaigns (messages on channels) to the
// indexes.
type mended struct {
	working chan struct{} // holds one token, which the call that runs mend takes
	done    bool
	next    *messages.Position // nil: from the first campaign
}

// The method "mend" finds campaigns (messages on channels) that an earlier version of capper stored. The method "mend"
// adds these campaigns to the indexes that sort campaigns by the number of users in their calls. Before a process lists
// messages with these indexes, it calls "mend", until one call has succeeded. If the time of a call runs out, the next
// call of "mend" continues at the same campaign.
func (c *messageCounts) mend(ctx context.Context) error {
	select {
	case c.mended.working <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.mended.working }()
	for !c.mended.done {
		q := messages.Query{After: c.mended.next, Max: mendedAtOnce}
		found, next, err := c.browse(ctx, &q, q.Max)
		if err != nil {
			return err
		}
		if err := c.addSizes(ctx, found); err != nil {
			return err
		}
		c.mended.next, c.mended.done = next, next == nil
	}
	return nil
}

// mendedAtOnce is the maximum number of campaigns (messages on channels) that one step of mend adds to the indexes.
const mendedAtOnce = 2000

// addSizes adds campaigns (messages on channels) to the indexes that sort campaigns by the number of users in their
// calls.
func (c *messageCounts) addSizes(ctx context.Context, found []messages.Candidate) error {
	entries := make([]entry, len(found))
	for i, one := range found {
		entries[i].Candidate = one
	}
	asked, err := c.answered(ctx, entries, script.AskedField)
	if err != nil {
		return err
	}
	life := strconv.FormatInt((c.keep() + script.PeriodLength).Milliseconds(), 10)
	writes, partitions := make([]single, 0, 2*len(found)), make([]int, 0, 2*len(found))
	for i, one := range found {
		p := c.config.Partition(one.Message.Token())
		key := script.SizesKey(c.config.Prefixes[p], script.Period(one.Last))
		member := string([]byte{byte(one.Channel)}) + one.Message.Text()
		writes = append(writes, single{args: []string{"zadd", key, strconv.FormatInt(asked[i], 10), member}},
			single{args: []string{"pexpire", key, life}})
		partitions = append(partitions, p, p)
	}
	return c.each(ctx, writes, partitions)
}
