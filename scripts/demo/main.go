// Command demo sends blasts to a running capper, prints what was decided, and
// checks the totals against what the limits imply. scripts/demo.sh runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"capper/client"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "the service")
	audience := flag.String("audience", "", "a roaring bitmap of the users to send to")
	count := flag.Uint64("users", 1_000_000, "send to the first so many of them")
	blasts := flag.Int("blasts", 3, "how many messages go to the audience")
	pacer := flag.String("pacer", "", "send to some of the first blast's allowed users at the pace of this pacer; none: send nothing")
	paced := flag.Int("paced", 200_000, "so many of them")
	flag.Parse()
	ctx := context.Background()
	allowed, err := run(ctx, os.Stdout, *url, *audience, *count, *blasts)
	if err == nil && *pacer != "" {
		err = pace(ctx, os.Stdout, *url, *pacer, firstOf(allowed, *paced))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
		os.Exit(1)
	}
}

// run sends the blasts, and answers whom the first of them allowed.
func run(ctx context.Context, out io.Writer, url, audience string, count uint64, blasts int) (allowed *roaring.Bitmap, err error) {
	api, err := client.New(client.Config{URL: url, BatchBitmap: 100_000})
	if err != nil {
		return nil, err
	}
	users, err := readBitmap(audience, count)
	if err != nil {
		return nil, err
	}
	limits, err := api.Limits(ctx)
	if err != nil {
		return nil, err
	}
	allowed = roaring.New()
	for blast := 1; blast <= blasts; blast++ {
		summary, took, err := send(ctx, out, api, users, blast, func(some *roaring.Bitmap) {
			if blast == 1 {
				allowed.Or(some)
			}
		})
		if err != nil {
			return nil, err
		}
		if err := report(out, summary, limits, blast, took); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(out, "\nevery total is what the limits imply\n")
	return allowed, nil
}

// readBitmap reads the first count users of a file.
func readBitmap(file string, count uint64) (*roaring.Bitmap, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	users := roaring.New()
	if err := users.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	if count < users.GetCardinality() {
		last, err := users.Select(uint32(count))
		if err != nil {
			return nil, err
		}
		users.RemoveRange(uint64(last), 1<<32)
	}
	return users, nil
}

// send filters the audience for one message, telling how it goes, and whom it allows.
func send(ctx context.Context, out io.Writer, api *client.Client, users *roaring.Bitmap, blast int, allow func(*roaring.Bitmap)) (*client.Summary, time.Duration, error) {
	fmt.Fprintf(out, "\nblast %d: %d users\n", blast, users.GetCardinality())
	start := time.Now()
	var total client.Summary
	told := 0
	request := &client.FilterRequest{MessageID: fmt.Sprintf("blast-%d", blast), Channel: "push", Bitmap: users}
	err := api.FilterAll(ctx, request, func(_ *client.FilterRequest, result *client.FilterResult) error {
		total.Add(&result.Summary)
		allow(result.AllowedBitmap)
		if total.Requested-told >= 250_000 {
			told = total.Requested
			fmt.Fprintf(out, "  %7d decided, %7d allowed, %.0f users/s\n", total.Requested, total.Allowed,
				float64(total.Requested)/time.Since(start).Seconds())
		}
		return nil
	})
	return &total, time.Since(start), err
}

// report prints a blast's decisions and compares them with the limits: the
// n-th message within a day goes to the segments that allow n or more.
func report(out io.Writer, s *client.Summary, limits *client.Limits, blast int, took time.Duration) error {
	fmt.Fprintf(out, "  %.2f s, %.0f users/s: %d allowed", took.Seconds(), float64(s.Requested)/took.Seconds(), s.Allowed)
	for _, limit := range slices.Sorted(maps.Keys(s.Denied)) {
		fmt.Fprintf(out, ", %d denied by %s", s.Denied[limit], limit)
	}
	fmt.Fprintf(out, ", %d unavailable\n", s.Unavailable)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "segment\trequested\tallowed\tdenied\tthe limits imply\t")
	denied, wrong := 0, 0
	for _, name := range slices.Sorted(maps.Keys(s.Segments)) {
		segment := s.Segments[name]
		want := implied(limits, name, segment.Requested, blast)
		if want != segment.Allowed {
			wrong++
		}
		denied += segment.Requested - want
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, segment.Requested, segment.Allowed, segment.Requested-segment.Allowed, want)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if wrong > 0 || s.Unavailable > 0 || s.Denied["daily"] != denied {
		return fmt.Errorf("blast %d: %d segments differ from what the limits imply; %d denied by daily, want %d", blast, wrong, s.Denied["daily"], denied)
	}
	return nil
}

// implied is how many of a segment's users may get the n-th message of a day.
func implied(limits *client.Limits, segment string, requested, n int) int {
	list, ok := limits.Segments[segment]
	if !ok {
		list = limits.Default
	}
	for _, limit := range list {
		if n > limit.Max {
			return 0
		}
	}
	return requested
}
