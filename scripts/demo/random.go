package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"capper/client"
)

// randomCalls is the number of concurrent calls of random, and randomBatch the number of users of each.
const (
	randomCalls = 4
	randomBatch = 10_000
)

// random sends a message to the ids of a file in random order, as strings, and prints how many are decided in a second.
// A file of UUIDs is sent a second time, packed.
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
	request := func(from, to int) *client.FilterRequest {
		return &client.FilterRequest{MessageID: "random", Channel: "push", IDs: ids[from:to]}
	}
	if err := sendAll(ctx, out, service, "as strings", len(ids), request); err != nil {
		return err
	}
	packed, ok := pack(ids)
	if !ok {
		return nil
	}
	return sendAll(ctx, out, service, "packed", len(ids), func(from, to int) *client.FilterRequest {
		return &client.FilterRequest{MessageID: "packed", Channel: "push", Packed: client.PackUUIDs(packed[from:to])}
	})
}

// pack returns the bytes of UUIDs; ok is false for other ids.
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

// sendAll makes the requests for all users in batches, and prints the rate.
func sendAll(ctx context.Context, out io.Writer, service *client.Client, form string, users int,
	request func(from, to int) *client.FilterRequest) error {
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(randomCalls)
	began := time.Now()
	for from := 0; from < users && ctx.Err() == nil; from += randomBatch {
		calls.Go(func() error {
			_, err := service.Filter(ctx, request(from, min(from+randomBatch, users)))
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	_, err := fmt.Fprintf(out, "%d ids in random order, %s, in %v: %.0f a second\n", users, form,
		took.Round(time.Millisecond), float64(users)/took.Seconds())
	return err
}
