package console

import (
	"fmt"
	"strings"

	"capper/client/api"
	"capper/internal/console/frame"
)

// The type reach holds the main numbers on the page about a campaign. If the audit (record of all decisions) contains
// the campaign's users, the main numbers count each user once. Without the audit, the main numbers count a user once
// for each call.
type reach struct {
	People                               bool
	Asked, Allowed, Released, NotDecided int64
	Denied, Suppressed                   map[string]int64
}

func reachOf(m *api.Message) *reach {
	if u := m.Users; u != nil {
		return &reach{true, u.Asked, u.Allowed, u.Released, u.Unavailable, u.Denied, u.Suppressed}
	}
	return &reach{false, m.Asked, m.Asked - overall(m.Denied) - m.Unavailable, 0, m.Unavailable, m.Denied, m.Suppressed}
}

const inAnswers = "in answers"

// The method "unit" returns the unit of the campaign's numbers, for the titles of table columns.
func (r *reach) unit() string {
	if r.People {
		return "each counted once"
	}
	return inAnswers
}

// Withheld returns the number of users of the campaign whom suppression, the holdout (control group) or quiet hours
// denied.
func (r *reach) Withheld() int64 {
	return r.Denied[api.LimitSuppressed] + r.Denied[api.LimitHoldout] + r.Denied[api.LimitQuiet]
}

// AtLimit returns the number of users of the campaign whom limits denied.
func (r *reach) AtLimit() (users int64) {
	for _, n := range r.Denied {
		users += n
	}
	return users - r.Withheld()
}

// The method Of returns the argument "part" as a percentage of the requested users, in parentheses.
func (r *reach) Of(part int64) string {
	if r.Asked <= 0 {
		return ""
	}
	return fmt.Sprintf("(%s %%)", strings.TrimSuffix(fmt.Sprintf("%.1f", 100*float64(part)/float64(r.Asked)), ".0"))
}

func (r *reach) funnel() []step {
	if !r.People {
		return []step{
			{"asked", r.Asked, "users in calls, counted in each call"},
			{"not withheld", r.Asked - r.Withheld(), "results without users who were suppressed, held out or in " +
				"quiet hours"},
			{"within limits", r.Asked - r.Withheld() - r.AtLimit(), "results without users whom a limit held back"},
			{"allowed", r.Allowed, "results without undecided users; retries count again"},
		}
	}
	steps := []step{
		{"asked", r.Asked, "users in any call"},
		{"not withheld", r.Asked - r.Withheld(), "without users who were suppressed, held out or in quiet hours"},
		{"within limits", r.Asked - r.Withheld() - r.AtLimit(), "without users who were at a limit"},
		{"allowed", r.Allowed + r.Released, "without users for whom no result is known"},
	}
	if r.Released > 0 {
		steps = append(steps, step{"not given back", r.Allowed, "users whose send still counts"})
	}
	return steps
}

// The method "says" returns a summary of the campaign in sentences.
func (r *reach) says(m *api.Message) string {
	on := ""
	if m.Channel != "" {
		on = " on " + m.Channel
	}
	if !r.People {
		return fmt.Sprintf("%s%s sends%s were recorded, in %s calls that asked for %s users. A user in two calls "+
			"counts twice: without an audit, this page counts answers and not people.", atLeast(m), count(m.Allowed),
			on, count(m.Calls), count(r.Asked))
	}
	parts := []string{fmt.Sprintf("This message was sent%s to %s of %s %s %s", on, count(r.Allowed), count(r.Asked),
		plural(r.Asked, "user", "users"), r.Of(r.Allowed))}
	add := func(users int64, state string) {
		if users > 0 {
			parts = append(parts, fmt.Sprintf("%s %s %s", count(users), plural(users, "was", "were"), state))
		}
	}
	if r.AtLimit() > 0 {
		add(r.AtLimit(), "at "+r.limits())
	}
	add(r.Denied[api.LimitSuppressed], "suppressed")
	add(r.Denied[api.LimitHoldout], "held out")
	add(r.Denied[api.LimitQuiet], "in quiet hours")
	add(r.Released, "allowed, and the send was given back")
	add(r.NotDecided, "not decided")
	return strings.Join(parts, "; ") + "."
}

// The method "limits" returns a text that names the limit that denied the most users.
func (r *reach) limits() string {
	var names []string
	for _, name := range mostFirst(r.Denied) {
		if name != api.LimitSuppressed && name != api.LimitHoldout && name != api.LimitQuiet {
			names = append(names, name)
		}
	}
	if len(names) == 1 {
		return "the limit " + names[0]
	}
	return "a limit, most of them at " + names[0]
}

func atLeast(m *api.Message) string {
	if m.AtLeast {
		return "At least "
	}
	return ""
}

func count(n int64) string { return frame.Count(n).Text }

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// The function "lacks" returns sentences about the sends and responses that are missing from the numbers of the
// campaign.
func lacks(m *api.Message, faults []string) (list []string) {
	if m.FromAudit {
		list = append(list, "The store does not count this message, so every number is from the audit.")
	}
	if u := m.Users; u != nil {
		if !m.FirstCall.IsZero() && u.Since.After(m.FirstCall) {
			list = append(list, "The audit begins after the first call of this message: users of earlier calls are "+
				"missing.")
		}
		if lacking := m.Allowed - m.Released - u.Allowed; !m.FromAudit && !m.AtLeast && lacking > 0 {
			list = append(list, fmt.Sprintf("The store holds %s more %s than the audit shows: those of other "+
				"instances appear when an audit file is closed, and those of erased users or imports never do.",
				count(lacking), plural(lacking, "send", "sends")))
		}
	}
	for _, fault := range faults {
		list = append(list, "Users are missing, because a file of the audit cannot be read: "+fault)
	}
	return list
}
