package console

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/ids"
)

const tryAt = "try"

// maxForm is the maximum size in bytes of a form with pasted ids or a file. The constant maxForm is sufficient for
// about 1.4 million ids.
const maxForm = 16 << 20

// These constants limit the number of users in a trial (decisions without recorded sends). If an audience has more than
// mostNow users, the trial decides about a sample of about sampleNow users.
const (
	mostNow   = api.MaxBitmapUsers
	sampleNow = 100_000
)

// tryPages holds the data that all visitors of the page for trying campaigns share.
type tryPages struct {
	outlooks *outlooks
}

// tryPage returns the console page on which visitors try a campaign without recording sends.
func tryPage() frame.Page {
	p := tryPages{newOutlooks()}
	return frame.Page{Path: tryAt, Nav: "Try it", Template: "try.html", Files: files, Show: p.show, Act: p.act,
		MaxForm: maxForm}
}

// tryView is the data for the template of the page on which visitors try a campaign.
type tryView struct {
	Channels   []string
	Channel    string
	Required   bool // the visitor must choose a channel
	Expression string
	Pasted     string
	Names      []string // names of segments, sets and audiences, for suggestions
	Others     []string // audience expressions of other planned campaigns, and an empty one
	Lines      bool     // pasted ids must be on separate lines
	Most       string   // maximum number of ids in a trial
	Wrong      *wrong
	Tried      *tried
	At         time.Time // time of a result for ids; zero: the result is for now
}

// Select returns the data for the template of the channel field with the given HTML id.
func (p *tryView) Select(id string) selection { return selection{id, p} }

// A selection is the data for the template of a field in which the visitor chooses a channel.
type selection struct {
	ID   string
	Page *tryView
}

// OpenIDs reports whether the page shows the part of the form for user ids unfolded.
func (p *tryView) OpenIDs() bool {
	return p.Pasted != "" || p.Wrong != nil && p.Wrong.Field != "expression" || p.Tried != nil && p.Expression == ""
}

// The type "wrong" describes an error in the visitor's input (typed text or uploaded file).
type wrong struct {
	Field  string // expression, ids or file
	Text   string
	Before string // the audience expression before the error
	At     string // the audience expression from the error on; "": the error is at its end
	Column int    // 0: the position of the error is unknown
}

// The type "tried" holds the result of a trial: the users whom a campaign would reach, without recorded sends.
type tried struct {
	What       string // description of the users
	Generation string // generation of the audience expression
	Users      uint64
	Sampled    int // number of users in the sample; 0: no sample, all users were decided
	Summary    *api.Summary
	Outlook    *Outlook
	Used       []api.LimitUse
	Overlap    *overlap // with other planned audiences; nil: no other audiences
	Ignored    int      // number of ids that the visitor gave twice
	Sendable   string
}

const tryQuestion = "How many users could receive a message now, and in the next seven days? Nothing is recorded."

// The method show tries a campaign for the audience expression in the query of the page, if there is one.
func (ps tryPages) show(v *frame.Visit) (*frame.View, error) {
	query := v.URL.Query()
	if name := query.Get("result"); name != "" {
		return ps.again(v, name)
	}
	p, err := begin(v, query.Get("channel"))
	if err != nil {
		return nil, err
	}
	p.Expression, p.Others = query.Get("audience"), othersOf(query)
	view := &frame.View{Title: "Try it", Question: tryQuestion, Data: p}
	if strings.TrimSpace(p.Expression) == "" {
		return view, nil
	}
	if p.Wrong = checkChannel(p); p.Wrong == nil {
		err = ps.tryExpression(v, p, view)
	}
	return refusedBy(p, view, err)
}

// The function begin returns the data of the page before the visitor has tried a campaign.
func begin(v *frame.Visit, channel string) (*tryView, error) {
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	p := &tryView{
		Channels: slices.Sorted(maps.Keys(policy.Channels)),
		Channel:  channel,
		Required: policy.RequireChannel,
	}
	kind, err := kindOf(v)
	if err != nil {
		return nil, err
	}
	p.Lines, p.Most = kind == ids.Text, frame.Count(mostOf(kind)).Text
	p.Others = []string{""}
	if p.Required && channel == "" {
		p.Channel = p.Channels[0]
	}
	if found, err := v.API.Segments(v.Context()); err == nil {
		for _, s := range found.Segments {
			p.Names = append(p.Names, s.Name)
		}
		p.Names = append(p.Names, slices.Sorted(maps.Keys(found.Audiences))...)
	}
	return p, nil
}

func checkChannel(p *tryView) *wrong {
	if p.Channel == "" || slices.Contains(p.Channels, p.Channel) {
		return nil
	}
	return &wrong{Field: "channel", Text: "The configuration has no channel of this name. Choose a channel from the " +
		"list."}
}

// If the API rejected the visitor's input, refusedBy adds the error text of the API to the page. If err is another
// error, refusedBy returns it.
func refusedBy(p *tryView, view *frame.View, err error) (*frame.View, error) {
	var e *client.Error
	switch {
	case err == nil:
	case client.HasCode(err, client.CodeInvalidRequest) && asError(err, &e):
		p.Wrong = wrongOf(p, e)
	default:
		return nil, err
	}
	if p.Wrong != nil {
		view.Status = http.StatusBadRequest
	}
	return view, nil
}

// wrongOf describes an error that the API found in the audience expression, with its position.
func wrongOf(p *tryView, e *client.Error) *wrong {
	w := &wrong{Field: "expression", Text: e.Message, Column: e.Column}
	if e.Column < 1 || e.Column > utf8.RuneCountInString(p.Expression)+1 {
		w.Column = 0
		return w
	}
	runes := []rune(p.Expression)
	w.Before, w.At = string(runes[:e.Column-1]), string(runes[e.Column-1:])
	return w
}

func (ps tryPages) tryExpression(v *frame.Visit, p *tryView, view *frame.View) error {
	view.Calls = []string{"POST /v1/audience/count", "POST /v1/forecast"}
	err := atOnce(func() (now, later basis, err error) { return ps.decideExpression(v, p) })
	if err == nil && len(p.Others) > 1 {
		p.Tried.Overlap, err = overlapOf(v, p)
	}
	switch {
	case err != nil:
	case p.Wrong != nil:
		p.Tried = nil
	default:
		present(p, view, v)
	}
	return err
}

// decideExpression counts the users of the audience expression, and asks the API for decisions about them for now and
// for the next days.
func (ps tryPages) decideExpression(v *frame.Visit, p *tryView) (now, later basis, err error) {
	audience := client.Audience{Expression: p.Expression}
	count, err := v.API.AudienceCount(v.Context(), &audience)
	if err != nil {
		return now, later, err
	}
	t := &tried{What: "the audience " + p.Expression, Users: count.Users, Summary: &api.Summary{},
		Generation: count.Generation}
	p.Tried = t
	now = basis{Generation: count.Generation}
	if count.Users == 0 {
		return now, now, nil
	}
	some := audience
	if count.Users > mostNow {
		some.Sample = &api.Sample{Percent: 100 * float64(sampleNow) / float64(count.Users), Salt: "console"}
	}
	f, err := v.API.Forecast(v.Context(), &client.ForecastRequest{Channel: p.Channel, Audience: &some, Used: true})
	if err != nil {
		return now, later, err
	}
	t.Summary, t.Used, now.ConfigVersion = &f.Forecasts[0].Summary, f.Used, f.ConfigVersion
	if some.Sample != nil {
		t.Sampled = f.Users
	}
	by := basisOf(f)
	if by.Generation != count.Generation {
		return now, by, nil
	}
	t.Outlook, err = ps.outlooks.Of(v, strings.Join([]string{p.Channel, by.Generation, by.ConfigVersion, p.Expression},
		"\x00"), func() (*Outlook, error) {
		return Audience(v, p.Channel, audience, count.Users)
	})
	if err != nil || t.Outlook == nil {
		return now, now, err
	}
	return now, t.Outlook.Basis, nil
}

// mostTimes is the maximum number of attempts for one trial. If the segments generation (published version) or the
// configuration changes during a trial, the page repeats the trial.
const mostTimes = 3

// atOnce calls the argument "ask" (a function) repeatedly, until all results have one segments generation (published
// version) and one configuration as their basis.
func atOnce(ask func() (now, later basis, err error)) error {
	for range mostTimes {
		now, later, err := ask()
		if err != nil || now == later {
			return err
		}
	}
	return &frame.Refusal{
		Status: http.StatusServiceUnavailable,
		What:   "The configuration or the segments changed while the numbers were computed.",
		Do:     "Try again in a moment.",
	}
}

// tryUsers tries a campaign, without recording sends, for a group of users.
func (ps tryPages) tryUsers(v *frame.Visit, p *tryView, users *group) error {
	return atOnce(func() (now, later basis, err error) {
		request := users.forecast(p.Channel)
		request.Used = true
		f, err := v.API.Forecast(v.Context(), request)
		if err != nil {
			return now, later, err
		}
		p.Tried.Summary, p.Tried.Used = &f.Forecasts[0].Summary, f.Used
		p.Tried.Outlook, err = iDs(v, p.Channel, users)
		if err != nil || p.Tried.Outlook == nil {
			return now, now, err
		}
		return basisOf(f), p.Tried.Outlook.Basis, nil
	})
}

// The function "present" adds the tables and the chart with the result of a trial to the page.
func present(p *tryView, view *frame.View, v *frame.Visit) {
	t := p.Tried
	t.Sendable = fmt.Sprintf("%s of %s", frame.Count(t.scaled(t.Summary.Allowed)).Text, frame.Count(t.Users).Text)
	view.Tables = append(view.Tables, trySegments(t), tryLimits(t), tryParts(t), tryUsed(t))
	if t.Overlap != nil {
		view.Tables = append(view.Tables, t.Overlap.pairs(), t.Overlap.byCount())
	}
	if t.Outlook != nil {
		t.Outlook = t.Outlook.from(t)
	}
	if t.Outlook != nil && t.Outlook.Decided > 0 {
		view.Tables = append(view.Tables, t.Outlook.Table("days", "The next seven days"))
		view.Pictures = append(view.Pictures, t.Outlook.Picture("days"))
	}
}
