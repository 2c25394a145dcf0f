package doctor

import (
	"context"
	"fmt"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// openSource opens the location of the segments for a check.
func openSource(ctx context.Context, s *Subject) (objects.Location, error) {
	return objects.Open(ctx, s.Config.Segments.Source, s.Config.Segments.S3)
}

// S3 accepts a signed request if the clocks differ by at most signedWithin.
const signedWithin = 15 * time.Minute

// If the clocks of this machine and of S3 differ by more than the constant "tolerable", `capper doctor` prints a
// warning. The constant "tolerable" is some seconds, because S3 servers report their time in whole seconds.
const tolerable = 5 * time.Second

// s3Clock compares the clock of this machine with the clock of the S3 server.
func s3Clock(s *Subject) check {
	return check{Name: "clocks.s3", Within: lookTime, Look: func(ctx context.Context, n *notes) {
		at, err := openSource(ctx, s)
		if err != nil {
			n.Skip("", "%v", err)
			return
		}
		before := s.now()
		date, ok, err := objects.ServerDate(ctx, at, segments.CurrentKey)
		took := s.now().Sub(before)
		switch {
		case !ok:
			n.Skip("", "the segments are in a directory")
			return
		case err != nil:
			n.Skip("", "%v", err)
			return
		}
		// The server's date is a time between the request and the response, cut to a whole second. The code adds half a
		// second, the average of the cut fraction.
		off := date.Add(500 * time.Millisecond).Sub(before.Add(took / 2))
		sure := 500*time.Millisecond + took/2
		judgeS3Clock(n, at.Name(), off, sure)
	}}
}

func judgeS3Clock(n *notes, of string, off, sure time.Duration) {
	seen := fmt.Sprintf("clock of S3 differs from this machine's by %s, measured to %s",
		off.Round(10*time.Millisecond),
		sure.Round(time.Millisecond))
	apart := off.Abs() - sure
	switch {
	case apart > signedWithin:
		n.Fail(of, seen, "set this machine's clock (NTP)", "S3 refuses signatures that are more than 15 minutes "+
			"off: RequestTimeTooSkewed")
	case apart > tolerable:
		n.Warn(of, seen, "check whether NTP keeps this machine's clock correct",
			"ages of generations are wrong by this difference, and if the clock of this machine is off, days and "+
				"quiet hours begin at the wrong time")
	default:
		n.OK(of, "%s", seen)
	}
}
