package redisstore

import (
	"context"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// SetTitle replaces the title of the message; see messages.Store. A repeated call with the same title changes nothing.
func (c *messageCounts) SetTitle(ctx context.Context, message capping.Message, title string) error {
	set := titleOperation{counts: c, message: message, title: title,
		begins: title != "" && c.config.Memory.KeepSends(message, 0)}
	err := c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "the title of the message is"
		r.Add(&set, c.config.Partition(message.Token()))
		r.Do(ctx)
		return r
	})
	if err == nil && set.refused {
		return messages.ErrNotRemembered
	}
	return err
}

// Title returns the title that was set for the message; see messages.Store.
func (c *messageCounts) Title(ctx context.Context, message capping.Message) (string, error) {
	t := message.Token()
	read := []single{{args: script.TitleOf(c.answerKeys(t, 0).Answers)}}
	err := c.each(ctx, read, []int{c.config.Partition(t)})
	return read[0].reply, err
}

// The method "named" returns the entries whose message id or title contains the text q.Part, with the shelf (sorted
// set) of each entry.
func (c *messageCounts) named(ctx context.Context, q *messages.Query, list []entry, of []*shelf) (wanted []entry,
	shelves []*shelf, err error) {
	var reads []single
	var partitions, places []int
	for i, one := range list {
		if !q.Named(one.Message.ID) {
			t := one.Message.Token()
			reads = append(reads, single{args: script.TitleOf(c.answerKeys(t, 0).Answers)})
			partitions, places = append(partitions, c.config.Partition(t)), append(places, i)
		}
	}
	if err := c.each(ctx, reads, partitions); err != nil {
		return nil, nil, err
	}
	without := make([]bool, len(list))
	for i := range reads {
		without[places[i]] = reads[i].reply == "" || !q.Named(reads[i].reply)
	}
	for i, one := range list {
		if !without[i] {
			wanted, shelves = append(wanted, one), append(shelves, of[i])
		}
	}
	return wanted, shelves, nil
}
