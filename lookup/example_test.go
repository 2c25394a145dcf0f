package lookup_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	"capper/internal/objects"
	"capper/lookup"
)

// A service follows the segments of a directory, or of s3://bucket/prefix, and asks the
// generation in use.
func ExampleFollow() {
	dir := published() // what segmentbuild does
	defer os.RemoveAll(dir)

	follower, err := lookup.Follow(context.Background(), lookup.Config{Source: dir, Require: []string{"opted-out"}})
	if err != nil {
		log.Fatal(err)
	}
	defer follower.Close()

	now := follower.Current() // answers that belong together are of one generation
	out, err := now.Contains("opted-out", 145)
	fmt.Println(now.Segment(42), now.Segment(145), now.Segment(200), out, err)

	audience, err := now.Audience("active | vip - opted-out")
	if err != nil {
		log.Fatal(err)
	}
	count, err := audience.Count(context.Background())
	fmt.Println(count, err)
	for users, err := range audience.Users(context.Background(), 100) {
		fmt.Println(len(users), "users from", users[0], err)
	}
	// Output:
	// active vip default true <nil>
	// 140 <nil>
	// 100 users from 0 <nil>
	// 40 users from 100 <nil>
}

// A set that is asked for often is found once.
func ExampleGeneration_Set() {
	dir := published()
	defer os.RemoveAll(dir)
	follower, err := lookup.Follow(context.Background(), lookup.Config{Source: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer follower.Close()

	singapore, err := follower.Current().Set("country/sg")
	if err != nil {
		log.Fatal(err)
	}
	in := make([]bool, 3)
	singapore.Mark([]uint32{9, 10, 11}, in)
	fmt.Println(singapore.Contains(15), in)
	// Output: true [false true true]
}

// published returns a directory with the generation of the tests.
func published() string {
	dir, err := os.MkdirTemp("", "lookup-*")
	if err != nil {
		log.Fatal(err)
	}
	first(exampleTB{}, objects.NewDirectory(dir))
	return dir
}

// exampleTB lets an example call helpers that need a testing.TB.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Context() context.Context          { return context.Background() }
func (exampleTB) Errorf(format string, args ...any) { log.Fatalf(format, args...) }
func (exampleTB) FailNow()                          { log.Fatal("failed") }
