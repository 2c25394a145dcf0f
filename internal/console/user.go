package console

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/console/frame"
	"capper/internal/ids"
	"capper/internal/server/gate"
)

//go:embed *.html *.svg
var files embed.FS

// userAt is the path of the page about a user, below /console/.
const userAt = "users"

// userPage returns the console page about one user. For each channel, the page about a user explains whether the user
// may receive a message, and when the next send is possible. The page about a user also shows recorded sends, the
// windows of the limits, and denials.
func userPage(link string) frame.Page {
	u := userPages{link}
	return frame.Page{
		Path:     userAt,
		Nav:      "User",
		Live:     true,
		Template: "user.html",
		Files:    files,
		Show:     u.show,
		Act:      u.erase,
	}
}

// userPages holds the address of a user's page in another system, with {id} in place of the user id. If the address
// is "", the console shows no link to another system.
type userPages struct{ link string }

// linkTo returns the address of the user's page in the other system that the configuration names.
func (u userPages) linkTo(user userRef) string {
	id := strings.ReplaceAll(url.QueryEscape(user.String()), "+", "%20")
	return strings.ReplaceAll(u.link, "{id}", id)
}

// userView is the data for the template of the page about a user.
type userView struct {
	Asked    string     // user id as the visitor has typed it
	Message  string     // id of the message about which the visitor asks; "": no message
	Wrong    string     // reason why the id is invalid
	Said     *message   // result of an action
	Known    *userKnown // nil: the visitor has not named a user
	Days     int        // number of days in the chart
	MayErase bool
}

// A message tells the visitor the result of an action on the page about a user, such as an erasure.
type message struct {
	Class string // good, warn or bad
	Text  string
}

// userKnown holds the data about a user that the page about this user shows.
type userKnown struct {
	*api.Explanation
	User     userRef
	Policy   *api.Policy
	Verdicts []verdict
	Notes    []string // sentences about suppression, holdout, quiet hours and missing sets
	Past     past
	Link     string                      // address of the user's page in another system; "": no link
	Why      []state                     // what happened to the message about which the visitor asks
	MayOpen  func(namespace string) bool // reports whether the visitor may see campaigns of the namespace
}

const userQuestion = "Why did this user not receive a message, and when may they receive one again?"

func (u userPages) show(v *frame.Visit) (*frame.View, error) { return u.view(v, nil) }

// The method view returns the content of the page about the user whom the query of the page names.
func (u userPages) view(v *frame.Visit, said *message) (*frame.View, error) {
	query := v.URL.Query()
	p := &userView{Asked: query.Get("id"), Message: query.Get("message"), Said: said, Days: days(query.Get("days")),
		MayErase: v.May(gate.ScopeAdmin)}
	shown := &frame.View{Title: "User", Question: userQuestion, Data: p}
	if strings.TrimSpace(p.Asked) == "" {
		p.Asked = ""
		return shown, nil
	}
	kind, err := kindOf(v)
	if err != nil {
		return nil, err
	}
	if kind != ids.Text { // blanks are a part of text ids
		p.Asked = strings.TrimSpace(p.Asked)
	}
	user, wrong := parseUser(kind, p.Asked)
	if p.Wrong = wrong; wrong != "" {
		shown.Status = http.StatusBadRequest
		return shown, nil
	}
	if p.Known, err = find(v, user, p.Days); err != nil {
		return nil, err
	}
	p.Known.Link = u.linkTo(user)
	if p.Message != "" {
		p.Known.Why = whyMessage(v, p.Known, p.Message, p.Days)
	}
	shown.Title = "User " + user.String()
	shown.Tables = []*frame.Table{userLimits(p.Known), userSends(p.Known), deniedTable(p.Known)}
	shown.Pictures = []*frame.Picture{timelinePicture(p.Known, v.Now, p.Days)}
	path := "GET /v1/users/" + url.PathEscape(user.String())
	shown.Calls = []string{path, path + "/decisions?since=" + since(v.Now, p.Days), "GET /v1/limits"}
	return shown, nil
}

// The variable "lengths" lists the numbers of days that the chart of a user's sends can show.
var lengths = []int{1, 7, 31}

// The function "days" parses the query parameter with the number of days that the chart shows.
func days(text string) int {
	if n, err := strconv.Atoi(text); err == nil && slices.Contains(lengths, n) {
		return n
	}
	return 7
}

// The method Lengths returns links to the page of the user with other numbers of days in the chart.
func (p *userView) Lengths() []length {
	list := make([]length, len(lengths))
	for i, n := range lengths {
		to := "?id=" + url.QueryEscape(p.Asked) + "&days=" + strconv.Itoa(n)
		if p.Message != "" {
			to += "&message=" + url.QueryEscape(p.Message)
		}
		list[i] = length{strconv.Itoa(n) + " days", to, n == p.Days}
	}
	list[0].Name = "1 day"
	return list
}

type length struct {
	Name, To string
	Here     bool
}

func since(now time.Time, days int) string {
	return now.UTC().AddDate(0, 0, -days).Truncate(time.Second).Format(time.RFC3339)
}

// The function find reads all data for the page about a user from the API.
func find(v *frame.Visit, user userRef, days int) (*userKnown, error) {
	e, err := user.explain(v)
	if err != nil {
		return nil, err
	}
	policy, err := v.API.Limits(v.Context())
	if err != nil {
		return nil, err
	}
	k := &userKnown{Explanation: e, User: user, Policy: policy, Notes: notes(e), MayOpen: v.MayOpen}
	k.Past = pastOf(v, user, days)
	channels := channelsOf(policy)
	if !policy.RequireChannel && len(policy.Channels) > 0 && withoutChannel(k) {
		channels = append(channels, "")
	}
	for _, channel := range channels {
		k.Verdicts = append(k.Verdicts, judge(v, k, channel))
	}
	return k, nil
}

// withoutChannel reports whether a recorded send to the user has no channel.
func withoutChannel(k *userKnown) bool {
	return slices.ContainsFunc(k.Sends, func(s api.Send) bool { return s.Channel != nil && *s.Channel == "" })
}

// mostVerdicts is the maximum number of channels for which the page has a verdict (whether the user may receive a
// message).
const mostVerdicts = 12

// channelsOf returns the names of the configured channels. If the configuration has no channels, channelsOf returns
// only "".
func channelsOf(p *api.Policy) []string {
	if len(p.Channels) == 0 {
		return []string{""}
	}
	names := slices.SortedFunc(maps.Keys(p.Channels), func(a, b string) int {
		return cmp.Compare(p.Channels[a],
			p.Channels[b])
	})
	return names[:min(len(names), mostVerdicts)]
}

// The method erase deletes the recorded sends of a user, after the visitor has typed the user id again.
func (u userPages) erase(v *frame.Visit) (*frame.View, string, error) {
	asked := v.URL.Query().Get("id")
	kind, err := kindOf(v)
	if err != nil {
		return nil, "", err
	}
	user, wrong := parseUser(kind, asked)
	if wrong != "" {
		shown, err := u.show(v)
		return shown, "", err
	}
	if strings.TrimSpace(v.PostFormValue("again")) != strings.TrimSpace(asked) {
		shown, err := u.view(v, &message{"bad", fmt.Sprintf("Nothing was erased: the typed id is not %s. Type the id "+
			"again to erase this user.", asked)})
		if shown != nil {
			shown.Status = http.StatusBadRequest
		}
		return shown, "", err
	}
	if err := user.erase(v); err != nil {
		if client.HasCode(err, client.CodeForbidden) {
			err = &frame.Refusal{Status: http.StatusForbidden, What: "Nothing was erased: your API key lacks the " +
				"scope admin.", Do: "Sign in with a key that has the scope, or ask the operator."}
		}
		return nil, "", err
	}
	done := fmt.Sprintf("User %s was erased: all recorded sends and other data in the store are gone, and limits "+
		"start from zero. The audit no longer shows earlier records of this user. Segments and sets are published "+
		"separately and stay as they are.", user)
	shown, err := u.view(v, &message{"good", done})
	return shown, "", err
}
