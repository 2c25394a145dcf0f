package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
	"capper/client/api"
)

// deliver stands for the engine's own delivery. It returns the users who did not get the message.
func deliver(users []uint32) (failed []uint32) { return nil }

// Example shows the send loop: filter, send to the allowed users, and release the sends that failed.
func Example() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := capper.Filter(ctx, &client.FilterRequest{
		MessageID: "promo-2026-11-20", Channel: "push", Users: []uint32{7, 42, 99},
	})
	if err != nil {
		log.Fatal(err) // no answer: send to nobody, and retry with the same message id
	}
	if failed := deliver(result.Allowed); len(failed) > 0 {
		if _, err := capper.Release(ctx, &client.ReleaseRequest{MessageID: "promo-2026-11-20",
			Users: failed}); err != nil {
			log.Fatal(err)
		}
	}
	for _, denial := range result.Denied {
		fmt.Println(denial.UserID, denial.Limit, denial.RetryAt)
	}
	if len(result.Unavailable) > 0 {
		fmt.Println("not decided, try again later with the same message id:", result.Unavailable)
	}
}

// ExampleClient_FilterAll filters an audience of millions, given as a bitmap, in parallel batches.
func ExampleClient_FilterAll() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080", Parallel: 8})
	if err != nil {
		log.Fatal(err)
	}
	audience := roaring.New()
	audience.AddRange(1_000_000, 11_000_000)
	var total api.Summary
	request := &client.FilterRequest{MessageID: "blast-7", Channel: "email", Bitmap: audience, Counts: true}
	err = capper.FilterAll(context.Background(), request, func(batch *client.FilterRequest,
		r *client.FilterResult) error {
		total.Add(&r.Summary)
		deliver(r.AllowedBitmap.ToArray())
		return nil
	})
	if err != nil {
		log.Fatal(err) // run again with the same message id: no send counts twice
	}
	fmt.Println(total.Allowed, "allowed,", total.Unavailable, "unavailable")
}

// ExampleClient_FilterAll_audience filters an audience that the service evaluates, in parts of one generation.
func ExampleClient_FilterAll_audience() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	request := &client.FilterRequest{
		MessageID: "blast-8", Channel: "push",
		Audience: &client.Audience{Expression: "active - vip - country/my", Sample: &api.Sample{Percent: 10,
			Salt: "subject-a"}},
	}
	err = capper.FilterAll(context.Background(), request, func(_ *client.FilterRequest, r *client.FilterResult) error {
		deliver(r.AllowedBitmap.ToArray())
		return nil
	})
	var ended *client.AudienceError
	switch {
	case client.HasCode(err, client.CodeGone):
		log.Println(err) // run again: the same message id counts no send twice, and the audience is the current one
	case errors.As(err, &ended):
		log.Println(err, "go on with generation", ended.Generation)
	case err != nil:
		log.Fatal(err) // not started: the expression is invalid or the service is unreachable
	}
}

// ExampleClient_Lookup returns the segments and sets of users in one named generation.
func ExampleClient_Lookup() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	found, err := capper.Lookup(context.Background(), &client.LookupRequest{Users: []uint32{7, 42},
		Sets: []string{"opted-out"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, user := range found.Users {
		fmt.Println(user.UserID, user.Segment, user.Sets)
	}
}

// ExampleClient_Members lists the users of a set page by page.
func ExampleClient_Members() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	for page, err := range capper.Members(context.Background(), "opted-out", "") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.UserIDs), "users of generation", page.Generation)
	}
}

// ExampleClient_ReleaseMessage cancels a campaign, so that its users may receive other messages.
func ExampleClient_ReleaseMessage() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	given, err := capper.ReleaseMessage(context.Background(), &client.MessageRelease{MessageID: "promo-2026-11-20"},
		nil)
	switch {
	case client.HasCode(err, client.CodeConflict):
		log.Fatal("the service keeps no audit: Release takes the users") // alternatively, configure audit.to
	case err != nil:
		log.Fatal(err) // the call can be repeated without a further effect
	}
	fmt.Println("given back:", given.Released)
	if given.Missing > 0 {
		fmt.Println("not yet in the audit, try again later:", given.Missing)
	}
}

// ExampleClient_Filter_transactional sends a transactional mail regardless of the limits, and still records the send.
func ExampleClient_Filter_transactional() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = capper.Filter(context.Background(), &client.FilterRequest{
		MessageID: "order-81723-shipped", Channel: "email", Users: []uint32{42}, Exempt: true,
	})
	if client.HasCode(err, client.CodeOverloaded) {
		log.Println("not counted:", err)
	}
}

// ExamplePacer runs thirty-two workers that send no faster than the carrier allows, together with all other senders
// that share the pacer.
func ExamplePacer() {
	capper, err := client.New(client.Config{URL: "http://127.0.0.1:8080"})
	if err != nil {
		log.Fatal(err)
	}
	pace, err := client.NewPacer(capper, client.PacerConfig{Pacers: []string{"carrier"}, MaxWait: 10 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	users := make(chan uint32)
	var workers sync.WaitGroup
	for range 32 {
		workers.Go(func() {
			for user := range users {
				if err := pace.Wait(ctx); err != nil { // a client.QueueTooLongError: another provider may be quicker
					log.Println("not sent to", user, err)
					continue
				}
				deliver([]uint32{user})
			}
		})
	}
	for user := range uint32(1_000_000) {
		users <- user
	}
	close(users)
	workers.Wait()
}
