package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"capper/client"
)

// randomCalls is the number of parallel filter calls that the function "random" makes, and randomBatch is the number of
// users in each call.
const (
	randomCalls = 4
	randomBatch = 10_000
)

// The function "random" makes filter calls with the ids from a file, in random order and as strings. The function then
// prints the number of decided users per second. If the ids are UUIDs, the calls for every second message contain the
// ids in packed form (16 bytes each).
func random(ctx context.Context, out io.Writer, url, file string) error {
	service, err := client.New(client.Config{URL: url})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ids := strings.Fields(string(text))
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	packed, isPacked := pack(ids)
	for message := range 4 {
		request := &client.FilterRequest{MessageID: fmt.Sprint("random-", message+1), Channel: "push"}
		form, part := "as strings", func(r *client.FilterRequest, from, to int) { r.IDs = ids[from:to] }
		if isPacked && message%2 == 1 {
			form, part = "packed", func(r *client.FilterRequest, from, to int) {
				r.Packed = client.PackUUIDs(packed[from:to])
			}
		}
		if err := sendAll(ctx, out, service, request, form, len(ids), part); err != nil {
			return err
		}
	}
	return nil
}

// The function "pack" converts the texts of UUIDs to packed ids (16 bytes each). For other ids, the result "ok" is
// false.
func pack(ids []string) (packed [][16]byte, ok bool) {
	for _, id := range ids {
		raw, err := hex.DecodeString(strings.ReplaceAll(id, "-", ""))
		if err != nil || len(raw) != 16 {
			return nil, false
		}
		packed = append(packed, [16]byte(raw))
	}
	return packed, true
}

// sendAll makes filter calls for all users in batches, and prints the number of users per second. The function "part"
// stores the users of a batch in the request.
func sendAll(ctx context.Context, out io.Writer, service *client.Client, request *client.FilterRequest, form string,
	users int, part func(request *client.FilterRequest, from, to int)) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(randomCalls)
	var allowed atomic.Int64
	began := time.Now()
	for from := 0; from < users && ctx.Err() == nil; from += randomBatch {
		calls.Go(func() error {
			batch := *request
			part(&batch, from, min(from+randomBatch, users))
			result, err := service.Filter(ctx, &batch)
			if err == nil {
				allowed.Add(int64(result.Summary.Allowed))
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	_, err := fmt.Fprintf(out, "%s: %d ids in random order, %s, in %v: %.0f a second, %d allowed\n", request.MessageID,
		users, form, took.Round(time.Millisecond), float64(users)/took.Seconds(), allowed.Load())
	return err
}
