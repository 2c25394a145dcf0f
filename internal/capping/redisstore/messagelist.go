package redisstore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// mostListed is the maximum number of campaigns that a call examines. The result says when there are more.
const mostListed = 500_000

// called is a campaign with the time of its last call, from the index.
type called struct {
	messages.Key
	last capping.Instant
}

// latestFirst orders campaigns by their last call, the latest first.
func latestFirst(a, b called) int {
	return cmp.Or(cmp.Compare(b.last, a.last), cmp.Compare(a.Message.Text(), b.Message.Text()),
		cmp.Compare(a.Channel, b.Channel))
}

// shelf holds the entries that were read from one partition's index.
type shelf struct {
	read int             // number of entries read
	last capping.Instant // time of the entry read last: all further entries are at that time or earlier
	done bool
}

// ListMessages returns the matching messages whose last call was at or after since; see messages.Store.
func (c *messageCounts) ListMessages(
	ctx context.Context,
	since capping.Instant,
	most int,
	match func(messages.Key) bool,
) (
	[]messages.Counts, bool, error) {
	listed, more, err := c.list(ctx, since, most, match)
	if err != nil {
		return nil, false, err
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
		return nil, false, err
	}
	var found []messages.Counts
	for _, one := range listed {
		if campaign, there := read[one.Key]; there { // otherwise it expired meanwhile
			found = append(found, campaign)
		}
	}
	return found, more, nil
}

// list returns the latest matching campaigns. list reads each partition's index piece by piece, and stops where the
// rest cannot be among the latest.
func (c *messageCounts) list(ctx context.Context, since capping.Instant, most int, match func(messages.Key) bool) (
	found []called, more bool, err error) {
	shelves := make([]shelf, len(c.config.Prefixes))
	for i := range shelves {
		shelves[i].last = math.MaxInt64
	}
	piece := max(16, 2*(most+1)/len(shelves))
	for looked := 0; ; {
		asked, reads := c.pieces(shelves, since, piece, found, most)
		if len(reads) == 0 {
			break
		}
		if looked += len(reads) * piece; looked > mostListed {
			more = true
			break
		}
		if err := c.do(ctx, reads); err != nil {
			return nil, false, err
		}
		for i, p := range asked {
			if found, err = shelves[p].add(reads[i].list, piece, found, match); err != nil {
				return nil, false, err
			}
		}
		slices.SortFunc(found, latestFirst)
		found = slices.CompactFunc(found, func(a, b called) bool { return a.Key == b.Key })
	}
	if len(found) > most {
		return found[:most], true, nil
	}
	return found, more, nil
}

// pieces reads the next piece of every index that may hold one of the latest campaigns still to be found.
func (c *messageCounts) pieces(
	shelves []shelf,
	since capping.Instant,
	piece int,
	found []called,
	most int,
) (asked []int,
	reads []reading) {
	for p, s := range shelves {
		if s.done || len(found) > most && s.last < found[most].last {
			continue
		}
		asked = append(asked, p)
		reads = append(reads, reading{readOperation{args: []string{
			"zrevrangebyscore", script.IndexKey(c.config.Prefixes[p]), "+inf", strconv.FormatInt(int64(since), 10),
			"withscores",
			"limit", strconv.Itoa(s.read), strconv.Itoa(piece),
		}}, p})
	}
	return asked, reads
}

// add appends the matching campaigns of a piece to found.
func (s *shelf) add(list []string, piece int, found []called, match func(messages.Key) bool) ([]called, error) {
	s.read += len(list) / 2
	s.done = len(list) < 2*piece
	for ; len(list) >= 2; list = list[2:] {
		last, err := strconv.ParseFloat(list[1], 64)
		if err != nil || len(list[0]) < 2 {
			return nil, script.ErrReply
		}
		s.last = capping.Instant(last)
		key := messages.Key{Message: capping.MessageOf(list[0][1:]), Channel: capping.Channel(list[0][0])}
		if match == nil || match(key) {
			found = append(found, called{key, s.last})
		}
	}
	return found, nil
}
