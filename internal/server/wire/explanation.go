package wire

import (
	"capper/client/api"
	"capper/internal/capping"
)

// Explanation converts the reasons why a user is allowed or denied to the API's form.
func Explanation(user capping.UserID, e *capping.Explanation) *api.Explanation {
	told := &api.Explanation{
		UserID: user, Segment: SegmentName(e.Segment), Generation: e.Generation, ConfigVersion: e.Policy.Version,
		Limits: []api.Standing{}, Sends: []api.Send{}, Missing: e.Missing, TooOld: e.TooOld,
	}
	for _, standing := range e.Standings {
		row := api.Standing{Limit: limitOf(standing.Limit, e.Policy), Used: standing.Used}
		if at := standing.FreesAt; at > 0 && at < capping.Never {
			row.RetryAt = pointerTo(at.Time())
		}
		told.Limits = append(told.Limits, row)
		if standing.Limit.Shadow && standing.FreesAt > 0 {
			told.WouldBeDeniedBy = append(told.WouldBeDeniedBy, standing.Limit.Name)
		}
	}
	if e.Policy.UsesZones() {
		told.Timezone = e.Zone.String()
	}
	tellWithheld(told, e)
	for _, entry := range e.Log.Entries() {
		row := api.Send{At: entry.At.Time()}
		if entry.Channel != 0 {
			row.Channel = pointerTo(e.Policy.ChannelName(entry.Channel))
		}
		if message, ok := e.Messages[entry.Token]; ok {
			row.Namespace, row.MessageID = &message.Namespace, &message.ID
		}
		told.Sends = append(told.Sends, row)
	}
	return told
}

// tellWithheld adds the rules that withhold sends from the user independently of the user's log.
func tellWithheld(told *api.Explanation, e *capping.Explanation) {
	for _, suppression := range e.Suppressed {
		told.Suppressed = append(told.Suppressed, suppressionOf(suppression, e.Policy))
	}
	if e.HeldOut {
		told.Holdout = holdoutOf(e.Policy)
	}
	for _, standing := range e.Quiet {
		row := api.QuietStanding{Quiet: quietOf(standing.Quiet, e.Policy), Now: standing.On}
		if standing.On && standing.Until < capping.Never {
			row.Until = pointerTo(standing.Until.Time())
		}
		told.Quiet = append(told.Quiet, row)
	}
	for _, channel := range e.NeverOpen {
		told.NeverOpen = append(told.NeverOpen, e.Policy.ChannelName(channel))
	}
}

func pointerTo[T any](v T) *T { return &v }
