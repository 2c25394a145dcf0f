package wire

import (
	"capper/client/api"
	"capper/internal/capping"
)

// The function Explanation converts the reasons for allowing or denying a user now to the type of package api.
func Explanation(user capping.UserID, e *capping.Explanation) *api.Explanation {
	answer := &api.Explanation{
		UserID: capping.Dense(user), Segment: SegmentName(e.Segment), Generation: e.Generation,
		ConfigVersion: e.Policy.Version,
		Limits:        []api.Standing{}, Sends: []api.Send{}, Missing: e.Missing, TooOld: e.TooOld,
	}
	for _, standing := range e.Standings {
		row := api.Standing{Limit: limitOf(standing.Limit, e.Policy), Used: standing.Used}
		if at := standing.FreesAt; at > 0 && at < capping.Never {
			row.RetryAt = pointerTo(at.Time())
		}
		answer.Limits = append(answer.Limits, row)
		if standing.Limit.Shadow && standing.FreesAt > 0 {
			answer.WouldBeDeniedBy = append(answer.WouldBeDeniedBy, standing.Limit.Name)
		}
	}
	if e.Policy.UsesZones() {
		answer.Timezone = e.Zone.String()
	}
	addWithheld(answer, e)
	for _, entry := range e.Log.Entries() {
		row := api.Send{At: entry.At.Time()}
		if entry.Channel != 0 {
			row.Channel = pointerTo(e.Policy.ChannelName(entry.Channel))
		}
		if message, ok := e.Messages[entry.Token]; ok {
			row.Namespace, row.MessageID = &message.Namespace, &message.ID
		}
		answer.Sends = append(answer.Sends, row)
	}
	return answer
}

// addWithheld adds to the response the rules that deny the user for reasons other than earlier sends.
func addWithheld(answer *api.Explanation, e *capping.Explanation) {
	for _, suppression := range e.Suppressed {
		answer.Suppressed = append(answer.Suppressed, suppressionOf(suppression, e.Policy))
	}
	if e.HeldOut {
		answer.Holdout = holdoutOf(e.Policy)
	}
	for _, standing := range e.Quiet {
		row := api.QuietStanding{Quiet: quietOf(standing.Quiet, e.Policy), Now: standing.On}
		if standing.On && standing.Until < capping.Never {
			row.Until = pointerTo(standing.Until.Time())
		}
		answer.Quiet = append(answer.Quiet, row)
	}
	for _, channel := range e.NeverOpen {
		answer.NeverOpen = append(answer.NeverOpen, e.Policy.ChannelName(channel))
	}
}

func pointerTo[T any](v T) *T { return &v }
