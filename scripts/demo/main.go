// Command demo makes the filter calls of large campaigns (blasts) to a running capper service and prints the decisions.
// The demo compares the totals of the decisions with the totals that follow from the limits. The script scripts/demo.sh
// runs this command.
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
	"capper/client/api"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080", "the service")
	audience := flag.String("audience", "", "a roaring bitmap of the users to send to")
	count := flag.Uint64("users", 1_000_000, "send to the first so many of them")
	blasts := flag.Int("blasts", 3, "how many messages go to the audience")
	pacer := flag.String("pacer", "", "send to some of the first blast's allowed users at the pace of this pacer; "+
		"none: send nothing")
	shuffled := flag.String("random", "", "only send one message to the ids of this text file, in random order")
	paced := flag.Int("paced", 200_000, "so many of them")
	flag.Parse()
	ctx := context.Background()
	if *shuffled != "" {
		if err := random(ctx, os.Stdout, *url, *shuffled); err != nil {
			fmt.Fprintln(os.Stderr, "demo: error:", err)
			os.Exit(1)
		}
		return
	}
	allowed, err := run(ctx, os.Stdout, *url, *audience, *count, *blasts)
	if err == nil && *pacer != "" {
		err = pace(ctx, os.Stdout, *url, *pacer, firstOf(allowed, *paced))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: error:", err)
		os.Exit(1)
	}
}

// The function "run" makes the filter calls of all blasts (large campaigns) for the audience, and of a further blast
// for an audience expression. The function "run" returns the users whom the service allowed in the first blast.
func run(ctx context.Context, out io.Writer, url, audience string, count uint64, blasts int) (allowed *roaring.Bitmap,
	err error) {
	service, err := client.New(client.Config{URL: url, BatchBitmap: 100_000})
	if err != nil {
		return nil, err
	}
	users, err := readBitmap(audience, count)
	if err != nil {
		return nil, err
	}
	known, err := learn(ctx, service)
	if err != nil {
		return nil, err
	}
	allowed = roaring.New()
	for blast := 1; blast <= blasts; blast++ {
		fmt.Fprintf(out, "\nblast %d: %d users\n", blast, users.GetCardinality())
		summary, took, err := send(ctx, out, service, &client.FilterRequest{MessageID: fmt.Sprintf("blast-%d", blast),
			Channel: "push", Bitmap: users}, func(some *roaring.Bitmap) {
			if blast == 1 {
				allowed.Or(some)
			}
		})
		if err != nil {
			return nil, err
		}
		if err := report(out, summary, known.want(users, blast, nil, 0), took); err != nil {
			return nil, fmt.Errorf("blast %d: %w", blast, err)
		}
	}
	if err := sendExpression(ctx, out, service, known, users, blasts); err != nil {
		return nil, fmt.Errorf("audience %s: %w", expression, err)
	}
	fmt.Fprintf(out, "\nevery total is what limits and sets imply\n")
	return allowed, nil
}

// The constant "expression" selects the users of the last blast (large campaign). The service evaluates the expression.
const expression = "vip | new - country/my"

// sendExpression makes the filter calls of one more blast (large campaign), for an audience expression. For the users
// of the earlier blasts, this message is their message number blasts+1 of the day.
func sendExpression(ctx context.Context, out io.Writer, service *client.Client, known *known, before *roaring.Bitmap,
	blasts int) error {
	fmt.Fprintf(out, "\nblast %d: audience '%s'\n", blasts+1, expression)
	request := &client.FilterRequest{MessageID: "by-expression", Channel: "push",
		Audience: &client.Audience{Expression: expression}}
	summary, took, err := send(ctx, out, service, request, func(*roaring.Bitmap) {})
	if err != nil {
		return err
	}
	users := roaring.Or(known.segments["vip"], known.segments["new"])
	users.AndNot(known.country)
	return report(out, summary, known.want(users, 1, before, blasts+1), took)
}

// readBitmap reads the first users from a bitmap file. The argument "count" is the number of users.
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

// The function "send" makes filter calls for all users of a request, and prints the progress. The function "allow"
// receives the allowed users.
func send(ctx context.Context, out io.Writer, service *client.Client, request *client.FilterRequest,
	allow func(*roaring.Bitmap)) (*api.Summary, time.Duration, error) {
	start := time.Now()
	var total api.Summary
	told := 0
	err := service.FilterAll(ctx, request, func(_ *client.FilterRequest, result *client.FilterResult) error {
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

// The function "report" prints the numbers of decisions about a blast (large campaign), and compares these numbers with
// the expected numbers.
func report(out io.Writer, s *api.Summary, want *wanted, took time.Duration) error {
	fmt.Fprintf(out, "  %.2f s, %.0f users/s: %d allowed", took.Seconds(), float64(s.Requested)/took.Seconds(),
		s.Allowed)
	for _, limit := range slices.Sorted(maps.Keys(s.Denied)) {
		fmt.Fprintf(out, ", %d denied by %s", s.Denied[limit], limit)
	}
	fmt.Fprintf(out, ", %d unavailable\n", s.Unavailable)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "segment\trequested\tallowed\tdenied\tlimits and sets imply\t")
	wrong := 0
	for _, name := range slices.Sorted(maps.Keys(want.segments)) {
		got, implied := s.Segments[name], want.segments[name]
		if got != implied {
			wrong++
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, got.Requested, got.Allowed, got.Requested-got.Allowed,
			implied.Allowed)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case wrong > 0 || s.Unavailable > 0 || len(s.Segments) != len(want.segments):
		return fmt.Errorf("the results for %d segments are wrong, and %d users are unavailable", wrong,
			s.Unavailable)
	case s.Denied["daily"] != want.daily || s.Denied["suppressed"] != want.suppressed ||
		s.Suppressed[suppressed] != want.suppressed:
		return fmt.Errorf(
			"wrong results: the limit \"daily\" denied %d users, want %d; %d users were suppressed, want %d",
			s.Denied["daily"], want.daily,
			s.Denied["suppressed"], want.suppressed)
	}
	return nil
}
