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

// mostMessagesRead is the maximum number of messages in one read of counts. A read of counts needs one command for each
// message and partition.
const mostMessagesRead = 64

// MessageCounts returns the counts of the message on each channel; see messages.Store. If a shard does not answer,
// MessageCounts returns an error instead of an incomplete sum.
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

// readAll reads the counts of any number of messages, at most mostMessagesRead messages at a time.
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

// The method "read" returns the counts of several different messages, with one entry for each campaign (message on a
// channel). An entry contains the decision counts, and the counts of sends summed over all partitions.
func (c *messageCounts) read(ctx context.Context, asked []capping.Message) (map[messages.Key]messages.Counts, error) {
	var reads []reading
	ends := make([]int, len(asked)) // by message: the end of its commands in reads
	for i, message := range asked {
		t := message.Token()
		reads = append(reads, hash(c.config.Partition(t), c.answerKeys(t, 0).Answers))
		ends[i] = len(reads)
		if messages.IsActivity(message) { // an activity has no sends
			continue
		}
		for p, prefix := range c.config.Prefixes {
			reads = append(reads, hash(p, string(script.AppendCountsKey(nil, prefix, t))))
		}
		ends[i] = len(reads)
	}
	if err := c.do(ctx, reads); err != nil {
		return nil, err
	}
	found := map[messages.Key]messages.Counts{}
	begin := 0
	for i, message := range asked {
		if err := decode(message, reads[begin:ends[i]], found); err != nil {
			return nil, err
		}
		begin = ends[i]
	}
	return found, nil
}

// The function "decode" decodes the replies about one message, and adds the message's campaigns (one for each channel)
// to the argument "found". The first element of "reads" contains the decision counts; the other elements contain the
// counts of sends.
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
	title := script.DecodeTitle(reads[0].list)
	for channel, of := range sends {
		key := messages.Key{Message: message, Channel: channel}
		of.AtLeast = atLeast
		found[key] = messages.Counts{Key: key, Title: title, Sends: of}
	}
	for channel, of := range answers {
		key := messages.Key{Message: message, Channel: channel}
		one := messages.Counts{Key: key, Title: title, Sends: found[key].Sends, Answers: *of}
		one.AtLeast = atLeast
		found[key] = one
	}
	return nil
}

// The function "hash" returns a command that reads all fields of a Redis hash.
func hash(partition int, key string) reading {
	return reading{readOperation{args: []string{"hgetall", key}}, partition}
}

// The method "do" runs all read commands in their partitions.
func (c *messageCounts) do(ctx context.Context, reads []reading) error {
	return c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "the counts of messages are"
		for i := range reads {
			r.Add(&reads[i].readOperation, reads[i].partition)
		}
		r.Do(ctx)
		return r
	})
}
