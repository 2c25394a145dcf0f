package redisstore

import (
	"context"
	"maps"
	"slices"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// mostRead bounds how many messages are read at once: each is a command for every partition.
const mostMessagesRead = 64

// MessageCounts is the message's campaigns; see messages.Store. A shard that cannot be read
// is an error: no part is told as the whole.
func (c *messageCounts) MessageCounts(ctx context.Context, message capping.Message) ([]messages.Counts, error) {
	if message.ID == "" {
		return nil, nil
	}
	found, err := c.read(ctx, []capping.Message{message})
	if err != nil {
		return nil, err
	}
	campaigns := slices.Collect(maps.Values(found))
	slices.SortFunc(campaigns, func(a, b messages.Counts) int { return int(a.Channel) - int(b.Channel) })
	return campaigns, nil
}

// readAll is read in parts.
func (c *messageCounts) readAll(
	ctx context.Context,
	asked []capping.Message,
) (map[messages.Key]messages.Counts, error) {
	found := map[messages.Key]messages.Counts{}
	for part := range slices.Chunk(asked, mostMessagesRead) {
		more, err := c.read(ctx, part)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, more)
	}
	return found, nil
}

// read is the campaigns of distinct messages: the answers of each, and the sum of its sends
// over all partitions.
func (c *messageCounts) read(ctx context.Context, asked []capping.Message) (map[messages.Key]messages.Counts, error) {
	var reads []reading
	for _, message := range asked {
		t := message.Token()
		reads = append(reads, hash(c.config.Partition(t), c.answerKeys(t).Answers))
		for p, prefix := range c.config.Prefixes {
			reads = append(reads, hash(p, string(script.AppendCountsKey(nil, prefix, t))))
		}
	}
	if err := c.do(ctx, reads); err != nil {
		return nil, err
	}
	found := map[messages.Key]messages.Counts{}
	each := 1 + len(c.config.Prefixes)
	for i, message := range asked {
		if err := decode(message, reads[i*each:][:each], found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// decode adds the message's campaigns: the first of reads has its answers, the others its sends.
func decode(message capping.Message, reads []reading, found map[messages.Key]messages.Counts) error {
	answers, err := script.DecodeAnswers(reads[0].list)
	if err != nil {
		return err
	}
	sends, atLeast := map[capping.Channel]messages.Sends{}, false
	for _, read := range reads[1:] {
		short, err := script.DecodeCounts(read.list, sends)
		if err != nil {
			return err
		}
		atLeast = atLeast || short
	}
	for channel, of := range sends {
		key := messages.Key{Message: message, Channel: channel}
		of.AtLeast = atLeast
		found[key] = messages.Counts{Key: key, Sends: of}
	}
	for channel, of := range answers {
		key := messages.Key{Message: message, Channel: channel}
		one := messages.Counts{Key: key, Sends: found[key].Sends, Answers: *of}
		one.AtLeast = atLeast
		found[key] = one
	}
	return nil
}

// hash reads a whole hash.
func hash(partition int, key string) reading {
	return reading{readOperation{args: []string{"hgetall", key}}, partition}
}

// do reads all of it.
func (c *messageCounts) do(ctx context.Context, reads []reading) error {
	return c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "what is counted by message is"
		for i := range reads {
			r.Add(&reads[i].readOperation, reads[i].partition)
		}
		r.Do(ctx)
		return r
	})
}
