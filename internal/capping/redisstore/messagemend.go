package redisstore

import (
	"context"
	"strconv"

	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// mended says how far this process has added the campaigns (messages on channels) of earlier versions to the indexes by
// asked users.
type mended struct {
	working chan struct{} // holds one token, which the call that runs mend takes
	done    bool
	next    *messages.Position // nil: from the first campaign
}

// mend adds the campaigns of earlier versions of capper, which had no indexes by asked users, to these indexes. mend
// runs once in each process, before the first list of messages that needs the indexes by asked users. If a call of mend
// runs out of time, the next call continues at the same campaign.
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

// mendedAtOnce is the number of campaigns (messages on channels) that mend handles in one step.
const mendedAtOnce = 2000

// addSizes writes the campaigns (messages on channels) into the indexes by asked users.
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
