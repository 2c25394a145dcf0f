package wire

import (
	"errors"
	"strconv"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/whatif"
)

// WhatIfRequest is the decoded body of POST /v1/whatif, which asks the service to decide recorded calls again under
// other limits.
type WhatIfRequest struct {
	Changes      []whatif.Change
	Since, Until string // "": not in the request
	Generation   string
	Campaigns    int
}

// DecodeWhatIf strictly decodes the body of POST /v1/whatif. The method Config of the decoded WhatIfRequest checks
// the changed limits and the times.
func DecodeWhatIf(body []byte) (*WhatIfRequest, error) {
	d := newDecoder(body, Bounds{}, api.WhatIfRequest{})
	r := &WhatIfRequest{Campaigns: api.WhatIfCampaigns}
	err := d.document(func(name string) (err error) {
		if err := d.markSeen(name); err != nil {
			return err
		}
		switch name {
		case "limits":
			r.Changes, err = d.limitChanges()
		case "since":
			r.Since, err = d.id(name, maxText)
		case "until":
			r.Until, err = d.id(name, maxText)
		case "generation":
			r.Generation, err = d.id(name, maxText)
		case "campaigns":
			r.Campaigns, err = d.whole(name, 0, api.MaxCampaigns)
		default:
			err = d.unknown(name)
		}
		return err
	})
	if err == nil && len(r.Changes) == 0 {
		err = Invalid("limits", "is required: name at least one limit and its new maximum")
	}
	return r, err
}

// limitChanges decodes the JSON array of changed limits in a what-if request.
func (d *decoder) limitChanges() (changes []whatif.Change, err error) {
	const field = "limits"
	if !d.accept('[') {
		return nil, Invalid(field, "%s is not an array of changes", d.value())
	}
	for !d.accept(']') {
		if len(changes) > 0 && !d.accept(',') {
			return nil, d.syntax("',' or ']'")
		}
		if len(changes) == api.MaxLimitChanges {
			return nil, Invalid(field, "at most %d changes are allowed, got more", api.MaxLimitChanges)
		}
		change, err := d.limitChange(changeField(len(changes), ""))
		if err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

func changeField(i int, field string) string {
	name := "limits[" + strconv.Itoa(i) + "]"
	if field != "" {
		name += "." + field
	}
	return name
}

func (d *decoder) limitChange(field string) (change whatif.Change, err error) {
	given, err := d.object(field, []string{"segment", "limit", "max", "remove"},
		func(name, field string) (err error) {
			switch name {
			case "segment":
				change.Segment, err = d.id(field, maxText)
			case "limit":
				change.Limit, err = d.id(field, capping.MaxName)
			case "max":
				change.Max, err = d.whole(field, 0, capping.LogBound)
			default:
				change.Remove, err = d.boolean(field)
			}
			return err
		})
	switch {
	case err != nil:
		return change, err
	case !given["limit"]:
		return change, Invalid(field+".limit", "is required: the name of the limit")
	case change.Remove && given["max"]:
		return change, Invalid(field+".max", "must not be combined with remove: a removed limit has no maximum")
	case !change.Remove && !given["max"]:
		return change, Invalid(field+".max", "is required, unless remove is true")
	}
	return change, nil
}

// Slack is the duration by which the clock of a caller may be ahead of the server's clock.
const Slack = time.Minute

// Config returns the settings of the what-if replay. The argument "policy" is the current policy, and the argument
// "published" lists the names of the published segments.
func (r *WhatIfRequest) Config(policy *capping.Policy, published []string, now time.Time) (cfg whatif.Config,
	err error) {
	if cfg.Generation = r.Generation; r.Generation != "" && !segments.IsGeneration(r.Generation) {
		return cfg, Invalid("generation", "%q must be a generation name such as 20261120T101500.000Z-0a1b2c3d",
			Clip([]byte(r.Generation)))
	}
	if cfg.Until, err = pastTime("until", r.Until, now); err != nil {
		return cfg, err
	}
	until := cfg.Until.Time()
	if cfg.Since, err = pastTime("since", r.Since, until.Add(-api.WhatIfSpan)); err != nil {
		return cfg, err
	}
	switch {
	case until.After(now.Add(Slack)):
		return cfg, Invalid("until", "%s is in the future: the time is now %s", r.Until,
			now.UTC().Format(api.Milliseconds))
	case cfg.Since >= cfg.Until:
		return cfg, Invalid("since", "%s is not before until, which is %s", cfg.Since.Time().Format(time.RFC3339),
			until.Format(time.RFC3339))
	case until.Sub(cfg.Since.Time()) > api.MaxWhatIfSpan:
		return cfg, Invalid("since", "%s is more than %d days before until, which is %s",
			cfg.Since.Time().Format(time.RFC3339), api.MaxWhatIfSpan/(24*time.Hour), until.Format(time.RFC3339))
	}
	cfg.Policy, err = whatif.Changed(policy, published, r.Changes)
	var misfit *whatif.ChangeError
	if errors.As(err, &misfit) {
		return cfg, Invalid(changeField(misfit.Index, misfit.Field), "%s", misfit.Message)
	}
	return cfg, err
}

// pastTime parses an RFC 3339 time. Unlike ForecastAt, pastTime returns a past time unchanged. If the text of the time
// is empty, pastTime returns the time in the argument "usual".
func pastTime(field, text string, usual time.Time) (capping.Instant, error) {
	if text == "" {
		return capping.InstantOf(usual), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !rfc3339.MatchString(text) {
		return 0, Invalid(field, "%q is not an RFC 3339 time such as 2026-11-21T09:00:00Z", Clip([]byte(text)))
	}
	instant := capping.InstantOf(t)
	if instant <= 0 || instant >= capping.Never {
		return 0, Invalid(field, "%s is not a time of this service", text)
	}
	return instant, nil
}

// The method Answer returns the response to POST /v1/whatif: the result of the replay, with the requested number of
// campaigns. If the API key of the caller has a namespace, the response contains only the campaigns of this namespace.
func (r *WhatIfRequest) Answer(result *whatif.Result, config, namespace string) *api.WhatIf {
	answer := &api.WhatIf{
		Since: result.Since, Until: result.Until, ReplayedFrom: result.Warm, ConfigVersion: config,
		ConfigVersions: append([]string{}, result.Configs...), Generation: result.Generation,
		Notes: append([]string{}, result.Notes...),
		Calls: result.Calls, Asked: result.Asked, Judged: result.Judged, Decided: result.Decided,
		Unavailable: result.Unavailable, Erased: result.Erased, Gaps: result.Gaps,
		Total: result.Total, Days: append([]api.WhatIfRow{}, result.Days...),
		Segments: append([]api.WhatIfRow{}, result.Segments...),
		Channels: append([]api.WhatIfRow{}, result.Channels...), Campaigns: []api.WhatIfRow{},
		Limits: append([]api.WhatIfChange{}, result.Limits...), Shadow: append([]api.WhatIfChange{}, result.Shadow...),
		Users: result.Users,
	}
	answer.Users.By = append([]api.WhatIfStep{}, result.Users.By...)
	for _, row := range result.Campaigns {
		if len(answer.Campaigns) < r.Campaigns && (namespace == "" || row.Namespace == namespace) {
			answer.Campaigns = append(answer.Campaigns, row)
			continue
		}
		if answer.Others == nil {
			answer.Others = &api.WhatIfRow{Name: othersName}
		}
		addRow(answer.Others, &row)
	}
	return answer
}

// othersName is the name of the row with the sum of all campaigns that the response does not list.
const othersName = "others"

// addRow adds the numbers of a campaign's row to the row "to", which is a sum.
func addRow(to, row *api.WhatIfRow) {
	addCounts(&to.Before, &row.Before)
	addCounts(&to.After, &row.After)
	to.Gained += row.Gained
	to.Lost += row.Lost
}

func addCounts(to, c *api.WhatIfCounts) {
	to.Sends += c.Sends
	to.Replayed += c.Replayed
	to.Denied += c.Denied
	to.Unjudged += c.Unjudged
	to.Released += c.Released
}
