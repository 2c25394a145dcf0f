package ops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"capper/internal/ids"
	"capper/internal/sizing"
	"capper/internal/terminal"
)

// The type count is a whole number on the command line, which may have the suffix k, M or G.
type count int64

// The constant exact is the largest whole number up to which a float64 represents all whole numbers exactly.
const exact = 1 << 53

// UnmarshalText parses a number on the command line, such as 270M, 30k or 1000000.
func (c *count) UnmarshalText(text []byte) error {
	number, times := string(text), 1.0
	for unit, of := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, times = rest, of
			break
		}
	}
	value, err := strconv.ParseFloat(number, 64)
	if all := value * times; err != nil || !(all >= 0 && all <= exact) || all != math.Trunc(all) {
		return fmt.Errorf("must be a whole number such as 270M, 30k or 1000000, got %q", text)
	}
	*c = count(value * times)
	return nil
}

// SizeCommand is the command `capper size --users N`.
type SizeCommand struct {
	Users     count         `required:"" placeholder:"N" help:"Number of users who receive messages, such as 270M."`
	IDs       string        `name:"ids" enum:"dense,uint64,uuid,text" default:"dense" help:"Kind of the user ids: dense (32-bit numbers), uint64, uuid or text. The flag --density applies only to dense ids."`
	Sends     float64       `default:"5" help:"Average number of sends per user within the longest window of all limits."`
	Density   float64       `default:"1" help:"Number of user ids, divided by the number of integers between the lowest and the highest user id. For example, 0.04 means that 4 of 100 integers are user ids."`
	Days      float64       `default:"7" help:"Number of days in the longest window of all limits."`
	Campaigns float64       `default:"10" help:"Number of campaigns per day."`
	Blast     *count        `placeholder:"N" help:"Number of users in the largest campaign. Default: a tenth of all users."`
	Within    time.Duration `default:"10m" help:"Maximum time in which the service must decide about all users of the largest campaign."`
	Calls     float64       `default:"0" help:"Number of calls per second that ask about one user each, while the largest campaign runs."`
	Shards    *int          `placeholder:"N" help:"Number of Redis masters. Default: the smallest number that can carry the load."`
	Replicas  int           `default:"2" help:"Number of replicas of each Redis master."`
	Instances int           `default:"2" help:"Number of instances of the service."`
	JSON      bool          `help:"Print the result as JSON."`
}

// The method "load" returns the planned load that the command-line flags describe, with default values for absent
// flags.
func (c *SizeCommand) load() sizing.Load {
	load := sizing.Load{Users: int64(c.Users)}.WithDefaults()
	if c.IDs != ids.Dense.String() {
		load.IDs = c.IDs
	}
	load.Sends, load.Density, load.Days, load.Messages = c.Sends, c.Density, c.Days, c.Campaigns
	load.Within, load.Single, load.Replicas, load.Instances = c.Within, c.Calls, c.Replicas, c.Instances
	if c.Blast != nil {
		load.Blast = int64(*c.Blast)
	}
	if c.Shards != nil {
		load.Shards = *c.Shards
	} else if load.Validate() == nil {
		load.Shards = load.LeastShards()
	}
	return load
}

// The function "faults" converts the errors of a planned load to errors of command-line flags, with one error per line.
func faults(err error) error {
	return terminal.Misuse(errors.New("--" + strings.ReplaceAll(err.Error(), "\n", "\n--")))
}

// The method Run prints the resources (memory, processors, disks) that the planned load requires.
func (c *SizeCommand) Run(_ context.Context, on *terminal.Streams) error {
	plan, err := sizing.Of(c.load())
	if err != nil {
		return faults(err)
	}
	if c.JSON {
		return terminal.JSON(on.Out, plan)
	}
	room := ""
	for _, figure := range plan.Figures {
		if figure.Room != room {
			if room = figure.Room; room != plan.Figures[0].Room {
				fmt.Fprintln(on.Out)
			}
			fmt.Fprintln(on.Out, room)
		}
		if _, err := fmt.Fprintf(on.Out, "  %-34s %12s   %s\n", figure.Name, figure.Text(),
			figure.Formula); err != nil {
			return err
		}
	}
	for _, note := range plan.Notes {
		fmt.Fprintf(on.Out, "\n%s\n", note)
	}
	return nil
}
