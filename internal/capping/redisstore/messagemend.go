package redisstore

import (
	"context"
	"strconv"

	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// mended says how far this process has updated the indexes that sort campaigns by the number of users in their calls.
// The update adds campaigns (messages on channels) that earlier versions of capper stored.
type mended struct {
	working chan struct{} // holds one token, which the call that runs mend takes
	done    bool
	next    *messages.Position // nil: from the first campaign
}

// mend adds campaigns (messages on channels) to the indexes that sort campaigns by the number of users in their calls.
// These are campaigns that an earlier version of capper stored without such indexes. Each process calls mend before the
// first list of messages that needs the indexes, until mend has succeeded once. If the time of a call of mend runs out,
// the next call continues with the same campaign.
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

// mendedAtOnce is how many campaigns (messages on channels) one step of mend adds to the indexes.
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
