package console

import (
	"fmt"
	"math"
	"sync"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
)

// mostUsers is the maximum number of users in an outlook (forecast for a group of users). If the group has more than
// mostUsers users, the outlook is only about a sample of the group.
const mostUsers = 10_000

// The constant age is the time for which the console reuses a computed outlook (forecast for a group of users).
const age = time.Minute

// An outlook (forecast for a group of users) covers several times: now, and then every Step for Days days.
const (
	Step   = 6 * time.Hour
	Days   = 7
	points = Days*24/6 + 1
)

// The constant "kept" is the maximum number of outlooks (forecasts for groups of users) that the console keeps in
// memory.
const kept = 64

// An Outlook is a forecast for a group of users: the number of users who may receive a message, at several times.
type Outlook struct {
	Users   uint64 // number of users in the group
	Decided int    // number of users in the sample
	Channel string
	Basis   basis
	Points  []api.ForecastPoint

	now *tried // counts of a larger sample for the first time; nil: the counts in Points
}

// The method "from" returns a copy of the forecast in which the numbers for the current time come from a trial. The
// trial and the forecast use different samples of the users, but a page should show only one number for the current
// time.
func (o *Outlook) from(t *tried) *Outlook {
	if !o.Sampled() || t.Summary == nil || len(o.Points) == 0 {
		return o
	}
	same := *o
	same.now = t
	return &same
}

// The method count returns the number of users that the function "of" finds in the summary for the time with the given
// index. The method count scales the number of users from the sample to the whole group.
func (o *Outlook) count(point int, of func(s *api.Summary) int) uint64 {
	if point == 0 && o.now != nil {
		return o.now.scaled(of(o.now.Summary))
	}
	return o.Scaled(of(&o.Points[point].Summary))
}

func allowed(s *api.Summary) int { return s.Allowed }

// The type basis names the segments generation (published version) and the configuration version of decisions.
type basis struct{ Generation, ConfigVersion string }

// basisOf returns the segments generation and the configuration version of the decisions in a forecast.
func basisOf(f *api.Forecast) basis { return basis{f.Generation, f.ConfigVersion} }

// The type "outlooks" computes outlooks (forecasts for groups of users) and caches them for a minute. The type
// "outlooks" is safe for concurrent use.
type outlooks struct {
	mu    sync.Mutex
	known map[string]keptOutlook
}

type keptOutlook struct {
	*Outlook
	at time.Time
}

// newOutlooks returns a value of the type outlooks (which computes and caches forecasts) with an empty cache.
func newOutlooks() *outlooks { return &outlooks{known: map[string]keptOutlook{}} }

// The method Of returns the cached forecast with the given name, or calls the argument "find" (a function) to compute a
// new forecast for the visitor.
func (o *outlooks) Of(v *frame.Visit, name string, find func() (*Outlook, error)) (*Outlook, error) {
	name = v.Session.Key + "\x00" + name
	o.mu.Lock()
	found, ok := o.known[name]
	o.mu.Unlock()
	if ok && v.Now.Sub(found.at).Abs() < age {
		return found.Outlook, nil
	}
	made, err := find()
	if err != nil || made == nil {
		return made, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for other, k := range o.known {
		if len(o.known) >= kept || v.Now.Sub(k.at).Abs() >= age {
			delete(o.known, other)
		}
	}
	o.known[name] = keptOutlook{made, v.Now}
	return made, nil
}

// The function Audience computes the outlook (forecast) for the users of an audience expression. The argument "users"
// is the number of users who match the expression.
func Audience(v *frame.Visit, channel string, of client.Audience, users uint64) (*Outlook, error) {
	if users > mostUsers {
		of.Sample = &api.Sample{Percent: 100 * float64(mostUsers) / float64(users), Salt: "console"}
	}
	return ask(v, &client.ForecastRequest{Channel: channel, Audience: &of}, users)
}

// iDs computes the outlook (forecast) for a group of users whose ids the console has.
func iDs(v *frame.Visit, channel string, users *group) (*Outlook, error) {
	return ask(v, users.some(mostUsers).forecast(channel), users.count())
}

func ask(v *frame.Visit, r *client.ForecastRequest, users uint64) (*Outlook, error) {
	for i := range points {
		r.At = append(r.At, v.Now.Add(time.Duration(i)*Step))
	}
	f, err := v.API.Forecast(v.Context(), r)
	if err != nil {
		return nil, err
	}
	return &Outlook{Users: users, Decided: f.Users, Channel: r.Channel, Basis: basisOf(f), Points: f.Forecasts}, nil
}

// The method Sampled reports whether the forecast is about only a sample of the users of its group.
func (o *Outlook) Sampled() bool { return uint64(o.Decided) < o.Users }

// The method Scaled scales a number of users in the forecast's sample to all users of the group.
func (o *Outlook) Scaled(n int) uint64 {
	if o.Decided == 0 {
		return 0
	}
	return uint64(float64(n)/float64(o.Decided)*float64(o.Users) + 0.5)
}

// The method Says describes the users of the forecast in sentences.
func (o *Outlook) Says() string {
	all := "each of the " + people(o.Users)
	if o.Users == 1 {
		all = "the user"
	}
	text := fmt.Sprintf("The forecast decides %s for %d times, as if no user received anything before.", all, points)
	if o.Sampled() {
		text = fmt.Sprintf("The forecast decides a sample of %s of the %s for %d times, as if no user received "+
			"anything before. The numbers are scaled to all users, with an error of about ±%.1f %% of all.",
			people(uint64(o.Decided)), people(o.Users), points, 100/math.Sqrt(float64(o.Decided)))
		if o.now != nil {
			text += " The first time has the numbers above, which are " + o.now.precise() + "."
		}
	}
	return text + " Nothing was recorded."
}

func people(n uint64) string {
	if n == 1 {
		return "1 user"
	}
	return frame.Count(n).Text + " users"
}

// The method Alt describes the chart of the forecast in words, for people who cannot see the chart.
func (o *Outlook) Alt() string {
	if len(o.Points) == 0 {
		return "No instants."
	}
	return fmt.Sprintf("%s may receive a message now, and %s in %d days. %s",
		people(o.count(0, allowed)), people(o.count(len(o.Points)-1, allowed)), Days, o.half())
}

// The method "half" returns a text with the time from which half of the users may receive the message.
func (o *Outlook) half() string {
	most := 0
	for i, p := range o.Points {
		most = max(most, p.Summary.Allowed)
		switch {
		case o.Decided == 0 || 2*p.Summary.Allowed < o.Decided:
		case i == 0:
			return "At least half of them may receive one now."
		default:
			return "Half of them may receive one from " + p.At.UTC().Format(instant) + " on."
		}
	}
	if most == 0 {
		return fmt.Sprintf("None of them may receive one within %d days.", Days)
	}
	return fmt.Sprintf("Fewer than half of them may receive one within %d days.", Days)
}

// The constant instant is the time layout that lists and tables of the console use.
const instant = "Mon 2 Jan, 15:04 UTC"
