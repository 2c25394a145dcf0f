package console

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/zones"
)

// These constants are sizes in the timeline chart, in units of the SVG view box.
const (
	top       = 30
	rowHeight = 30
	bottom    = 46
)

// A shape holds the sizes of the timeline chart that differ between phones and larger screens.
type shape struct {
	Width, Left int // Left is the x position of the beginning of the time axis
	margin      int // space after the time axis
	nameHeight  int // height of the line with the name above a row; 0: the names are on the left
	most        int // maximum number of labels on the time axis
}

var (
	wide   = shape{Width: 900, Left: 120, margin: 20, most: 9}
	narrow = shape{Width: 380, Left: 12, margin: 12, nameHeight: 18, most: 4}
)

// A timeline is the data of the chart of a user's sends and denials. The timeline chart has a row for each channel with
// its sends and denials, and a row for each limit with its window.
type timeline struct {
	shape
	Dark   bool
	Height int
	Right  int
	Floor  int // y position of the lower end of the rows
	Now    float64
	Ticks  []tick
	Quiet  []span
	Rows   []row

	from, to time.Time
}

type tick struct {
	X      float64
	Day    string
	Hour   string
	Anchor string
}

type span struct{ X, Width float64 }

type row struct {
	Name   string
	Y      int
	Center int
	NameY  int
	left   float64 // x position of the beginning of the time axis
	Dots   []dot   // sends
	Denied []dot   // denied sends
	Window *span   // window of a limit
	Label  string  // label in the window
	Full   bool
	Frees  *float64 // x position of the time at which a slot becomes free
}

type dot struct{ X float64 }

// timelinePicture returns a chart of the sends and denials of a user over the given number of days.
func timelinePicture(k *userKnown, now time.Time, days int) *frame.Picture {
	return &frame.Picture{
		Name: "timeline", Alt: alt(k, now, days),
		Draw: func(dark bool) ([]byte, error) { return draw(timelineOf(k, now, days, wide, dark)) },
		Slim: func(dark bool) ([]byte, error) { return draw(timelineOf(k, now, days, narrow, dark)) },
	}
}

// The function alt describes the timeline chart in words, for people who cannot see the chart.
func alt(k *userKnown, now time.Time, days int) string {
	shown := 0
	for _, s := range k.Sends {
		if s.At.After(now.AddDate(0, 0, -days)) {
			shown++
		}
	}
	denied := len(slices.DeleteFunc(slices.Clone(k.Past.Decisions),
		func(d api.Decision) bool { return d.Outcome != "denied" }))
	text := []string{fmt.Sprintf("Timeline of the last %s: %s recorded, %d held back.", pastDays(days), sends(shown),
		denied)}
	for _, l := range k.Limits {
		said := fmt.Sprintf("%s: %d of %d used", l.Name, l.Used, l.Max)
		if l.RetryAt != nil {
			said += ", a slot frees " + frame.Relative(now, *l.RetryAt)
		}
		text = append(text, said+".")
	}
	return strings.Join(text, " ")
}

func timelineOf(k *userKnown, now time.Time, days int, of shape, dark bool) *timeline {
	t := &timeline{shape: of, Dark: dark, Right: of.Width - of.margin, from: now.AddDate(0, 0, -days)}
	t.to = now.Add(time.Duration(days) * 24 * time.Hour / 7)
	for _, l := range k.Limits { // extends the axis to the times at which slots become free, if they fit
		if l.RetryAt != nil && l.RetryAt.After(t.to) {
			t.to = *l.RetryAt
		}
	}
	if furthest := now.Add(time.Duration(days) * 24 * time.Hour); t.to.After(furthest) {
		t.to = furthest
	}
	t.Now = t.x(now)
	t.channels(k)
	for _, l := range k.Limits {
		t.limit(l, k, now)
	}
	t.Floor = top + t.step()*len(t.Rows)
	t.Height = t.Floor + bottom
	t.quiet(k)
	t.axis()
	return t
}

// The method x returns the horizontal position of a time in the timeline chart.
func (t *timeline) x(at time.Time) float64 {
	share := float64(at.Sub(t.from)) / float64(t.to.Sub(t.from))
	return float64(t.Left) + share*float64(t.Right-t.Left)
}

// The method step returns the height of a row in the timeline chart, including its name.
func (t *timeline) step() int { return rowHeight + t.nameHeight }

func (t *timeline) inside(at time.Time) bool { return !at.Before(t.from) && !at.After(t.to) }

func (t *timeline) add(r row) {
	r.left = float64(t.Left)
	r.Y = top + t.step()*len(t.Rows)
	r.Center = r.Y + t.nameHeight + rowHeight/2
	if r.NameY = r.Center + 4; t.nameHeight > 0 {
		r.NameY = r.Y + t.nameHeight - 2
	}
	t.Rows = append(t.Rows, r)
}

// The method "channels" adds a row to the timeline chart for each channel on which the user has sends or denials.
func (t *timeline) channels(k *userKnown) {
	rows := map[string]*row{}
	var order []string
	of := func(channel string) *row {
		if rows[channel] == nil {
			name := cmp.Or(channel, "no channel")
			rows[channel] = &row{Name: name}
			order = append(order, channel)
		}
		return rows[channel]
	}
	for _, channel := range channelsOf(k.Policy) {
		of(channel)
	}
	for _, s := range k.Sends {
		if t.inside(s.At) {
			r := of(plain(s.Channel))
			r.Dots = append(r.Dots, dot{t.x(s.At)})
		}
	}
	for _, d := range k.Past.Decisions {
		if d.Outcome == "denied" && t.inside(d.At) {
			r := of(d.Channel)
			r.Denied = append(r.Denied, dot{t.x(d.At)})
		}
	}
	for _, channel := range order {
		t.add(*rows[channel])
	}
}

func plain(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// The method limit adds a row to the timeline chart with the current window of a limit. If the window began before the
// first time on the chart, the row shows the window from the left edge of the chart.
func (t *timeline) limit(l api.Standing, k *userKnown, now time.Time) {
	r := row{Name: l.Name, Label: fmt.Sprintf("%d of %d", l.Used, l.Max), Full: l.Used >= l.Max && !l.Shadow}
	if from, known := windowStart(l.Limit, k.Timezone, now); known {
		x := max(t.x(from), float64(t.Left))
		r.Window = &span{x, max(t.Now-x, 2)}
	}
	if l.RetryAt != nil && t.inside(*l.RetryAt) {
		x := t.x(*l.RetryAt)
		r.Frees = &x
	}
	t.add(r)
}

// windowStart returns the time from which sends count towards the limit at the time now. If the console does not know
// the kind of the limit or the time zone, windowStart returns false, and the chart shows no window. A service that is
// newer than the console may have kinds of limits that the console does not know.
func windowStart(l api.Limit, zone string, now time.Time) (time.Time, bool) {
	if l.Calendar == "" {
		window, err := time.ParseDuration(l.Window)
		return now.Add(-window), err == nil
	}
	if l.Timezone != "user" {
		zone = l.Timezone
	}
	place, err := zones.Load(cmp.Or(zone, "UTC"))
	if err != nil {
		return time.Time{}, false
	}
	local := now.In(place)
	day := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, place)
	switch l.Calendar {
	case "day":
		return day, true
	case "week":
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7), true
	case "month":
		return day.AddDate(0, 0, 1-day.Day()), true
	}
	return time.Time{}, false
}

// The method quiet adds the quiet hours that apply to the user to the timeline chart, as shaded areas.
func (t *timeline) quiet(k *userKnown) {
	for _, q := range k.Quiet {
		zone := q.Zone
		if zone == "user" {
			zone = k.Timezone
		}
		place, err := zones.Load(cmp.Or(zone, "UTC"))
		begin, ok := minutesOf(q.From)
		end, also := minutesOf(q.To)
		if err != nil || !ok || !also {
			continue
		}
		if end <= begin {
			end += 24 * 60
		}
		first := t.from.In(place).AddDate(0, 0, -1)
		for day := first; day.Before(t.to); day = day.AddDate(0, 0, 1) {
			at := func(minute int) time.Time {
				return time.Date(day.Year(), day.Month(), day.Day(), 0, minute, 0, 0, place)
			}
			from, to := max(t.x(at(begin)), float64(t.Left)), min(t.x(at(end)), float64(t.Right))
			if to > from {
				t.Quiet = append(t.Quiet, span{from, to - from})
			}
		}
	}
}

// minutesOf converts a time of day such as 21:00 to the number of minutes since midnight.
func minutesOf(clock string) (int, bool) {
	hour, minute, _ := strings.Cut(clock, ":")
	h, err := strconv.Atoi(hour)
	m, also := strconv.Atoi(minute)
	return 60*h + m, err == nil && also == nil
}

// The variable "steps" lists the possible distances between two labels on the time axis of the timeline chart.
var steps = []time.Duration{2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour,
	7 * 24 * time.Hour, 14 * 24 * time.Hour}

func (t *timeline) axis() {
	step := steps[len(steps)-1]
	for _, s := range steps {
		if t.to.Sub(t.from)/s <= time.Duration(t.most) {
			step = s
			break
		}
	}
	for at := t.from.UTC().Truncate(step).Add(step); !at.After(t.to); at = at.Add(step) {
		next := tick{X: t.x(at), Day: at.Format("2 Jan"), Anchor: "middle"}
		if step < 24*time.Hour {
			next.Hour = at.Format("15:04")
		}
		if next.X > float64(t.Right)-20 {
			next.Anchor = "end"
		}
		t.Ticks = append(t.Ticks, next)
	}
}

func draw(t *timeline) ([]byte, error) {
	picture, err := template.ParseFS(files, "timeline.svg")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = picture.Execute(&out, t)
	return out.Bytes(), err
}
