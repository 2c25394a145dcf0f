package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
)

// The constant "senders" is the number of parallel senders in the demo. Each sender has its own client for the pacer,
// like a sender on a separate machine. All senders use the same service.
const senders = 8

// The constant "together" is the number of users in one batch. A sender sends to all users of a batch at the same time.
const together = 50

// The type "sent" is a number of sends that one sender made at one time.
type sent struct {
	at    time.Time
	users int
}

// The function "pace" sends to the users at the rate of the service's pacer (rate limiter), and prints the duration.
// The function then compares the actual rate with the configured rate.
func pace(ctx context.Context, out io.Writer, url, name string, users []uint32) error {
	api, err := client.New(client.Config{URL: url})
	if err != nil {
		return err
	}
	before, err := api.Pacer(ctx, name)
	if err != nil {
		return err
	}
	var rate int
	if _, err := fmt.Sscanf(before.Rate, "%d/s", &rate); err != nil || before.Used == nil {
		return fmt.Errorf("pacer %s must be configured with a rate per second and with at least one limit", name)
	}
	began := time.Now()
	sends, err := sendPaced(ctx, url, name, users)
	if err != nil {
		return err
	}
	after, err := api.Pacer(ctx, name)
	if err != nil {
		return err
	}
	total, busiest := count(sends)
	took := sends[len(sends)-1].at.Sub(began)
	fmt.Fprintf(out, "\npaced: %d allowed users, %d senders that share the pacer %s, %s\n", total, senders, name,
		before.Rate)
	fmt.Fprintf(out, "  %.2f s, %.0f sends/s, %d in the busiest second, as late ones catch up; %d permits taken\n",
		took.Seconds(), float64(total)/took.Seconds(), busiest, *after.Used-*before.Used)
	least := time.Duration(total-1) * time.Second / time.Duration(rate)
	switch {
	case total != len(users):
		return fmt.Errorf("demo of a pacer (rate limiter): %d messages were sent, but %d were expected", total,
			len(users))
	case took < least:
		return fmt.Errorf("demo of a pacer (rate limiter): the sends took %v, but the rate %s requires at least %v",
			took, before.Rate, least)
	case *after.Used-*before.Used < total:
		return fmt.Errorf(
			"demo of a pacer (rate limiter): %d messages were sent, but the pacer granted only %d permits",
			total, *after.Used-*before.Used)
	}
	return nil
}

// sendPaced sends once to each user, and returns the sends in the order of time.
func sendPaced(ctx context.Context, url, name string, users []uint32) ([]sent, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan []uint32, len(users)/together+1)
	for batch := range slices.Chunk(users, together) {
		work <- batch
	}
	close(work)
	var mu sync.Mutex
	var all []sent
	var sending sync.WaitGroup
	for range senders {
		sending.Go(func() {
			own, err := sender(ctx, url, name, work)
			if err != nil {
				stop(err)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	sending.Wait()
	slices.SortFunc(all, func(a, b sent) int { return a.at.Compare(b.at) })
	if len(all) == 0 && ctx.Err() == nil {
		return nil, errors.New("the demo of a pacer (rate limiter) needs at least one user")
	}
	return all, context.Cause(ctx)
}

// The function "sender" takes batches of users from the Go channel "work", and sends to each batch when the pacer
// allows the sends.
func sender(ctx context.Context, url, name string, work <-chan []uint32) (sends []sent, err error) {
	api, err := client.New(client.Config{URL: url})
	if err != nil {
		return nil, err
	}
	pacer, err := client.NewPacer(api, client.PacerConfig{Pacers: []string{name}})
	if err != nil {
		return nil, err
	}
	for batch := range work {
		if err := pacer.WaitN(ctx, len(batch)); err != nil {
			return sends, err
		}
		sends = append(sends, sent{time.Now(), len(batch)}) // a real sender calls its provider here
	}
	return sends, nil
}

// The function "count" returns the total number of sends, and the number of sends in the busiest second.
func count(sends []sent) (total, busiest int) {
	first, within := 0, 0
	for _, s := range sends {
		total += s.users
		for within += s.users; s.at.Sub(sends[first].at) >= time.Second; first++ {
			within -= sends[first].users
		}
		busiest = max(busiest, within)
	}
	return total, busiest
}

// firstOf returns the first users of a set, at most "most" users.
func firstOf(users *roaring.Bitmap, most int) []uint32 {
	list := make([]uint32, min(most, int(users.GetCardinality())))
	return list[:users.ManyIterator().NextMany(list)]
}
