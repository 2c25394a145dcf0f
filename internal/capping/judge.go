package capping

// Outcome is what was decided of one user. The zero value is Unavailable, so
// that what nobody decided is never sent.
type Outcome uint8

// The outcomes.
const (
	Unavailable Outcome = iota // not decided: retry with the same message id
	Allowed                    // may be sent; recorded, unless the call records nothing
	Replayed                   // may be sent; an earlier call had recorded this very send
	Denied                     // must not be sent; nothing was recorded
)

// Verdict is the decision on one user. The zero value is Unavailable.
type Verdict struct {
	Outcome Outcome
	Rule    uint8   // Denied: the rule that frees a slot last, an index into the user's rules
	FreesAt Instant // Denied: when every rule has a free slot; Never when a Max is 0
}

// Judge decides one send of the token on the channel at now against a user's
// log. Entries at or before horizon are forgotten. It changes nothing:
// recording an Allowed send is the store's part. It does not allocate.
func Judge(log Log, channel Channel, token Token, rules []Rule, now, horizon Instant) Verdict {
	if token != (Token{}) && log.find(channel, token, horizon) >= 0 {
		return Verdict{Outcome: Replayed}
	}
	verdict := Verdict{Outcome: Allowed}
	log = log.Live(horizon)
	for i := range rules {
		if at := rules[i].FreesAt(log, now); at > verdict.FreesAt {
			verdict = Verdict{Outcome: Denied, Rule: uint8(i), FreesAt: at}
		}
	}
	return verdict
}
