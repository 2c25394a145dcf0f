package capping

// Outcome is the decision for one user. The zero value of Outcome is Unavailable, so that nobody delivers a send
// without a decision.
type Outcome uint8

// These constants are the possible decisions for one user.
const (
	Unavailable Outcome = iota // not decided: retry with the same message id
	Allowed                    // may be sent; recorded when the call records sends
	Replayed                   // may be sent; an earlier call recorded the same send
	Denied                     // must not be sent; nothing was recorded

	outcomes = iota // the number of outcomes
)

// outcomeNames maps each outcome to its name in API responses, metrics and the audit.
var outcomeNames = [outcomes]string{
	Unavailable: "unavailable", Allowed: "allowed", Replayed: "replayed", Denied: "denied",
}

// Outcomes returns all outcomes.
func Outcomes() (list [outcomes]Outcome) {
	for i := range list {
		list[i] = Outcome(i)
	}
	return list
}

// String returns the outcome's name.
func (o Outcome) String() string { return outcomeNames[o] }

// Verdict is a store's decision for one user. The zero value of a Verdict is Unavailable.
type Verdict struct {
	Outcome Outcome
	By      Reason // the reason of a Denied outcome
	// If a limit denied the send, the field Rule is the index of the rule whose slot becomes free last. If a
	// suppression denied the send, the field Rule is the index of the suppression in the policy. If quiet hours denied
	// the send, the field Rule is the index of the quiet hours in the policy.
	Rule uint8
	// If Outdated is true, the user is Unavailable because sets have changed since the versions in Batch.Known. FreesAt
	// is then the instant of the call's first attempt with an unknown result, or Never.
	Outdated bool
	Shadow   uint32  // if Allowed: the shadow rules that would have denied; bit 1<<i stands for rule i
	FreesAt  Instant // if Denied: the instant at which every rule has a free slot; Never: waiting does not help
}

// Reason is the cause of a denial. A store denies a send only with the reason ByLimit.
type Reason uint8

// These constants are the reasons of a denial. The Capper checks suppression, the holdout and quiet hours in this
// order, and the limits of the user last.
const (
	ByLimit       Reason = iota
	BySuppression        // the user is in a suppressed set of the policy
	ByHoldout            // the user is in the holdout, which receives no sends and serves as a comparison group
	ByQuiet              // quiet hours are on for the user
)

// Name returns the name of the reason. Responses show the name of the reason in the field for a limit's name. Name
// returns "" for ByLimit.
func (r Reason) Name() string {
	return [...]string{ByLimit: "", BySuppression: "suppressed", ByHoldout: "holdout", ByQuiet: "quiet"}[r]
}

// The function Judge decides whether a user with the given log may receive a message on the channel at the instant now.
// The token is the short hash of this message. The function Judge ignores log entries that are not later than the time
// "horizon". The function Judge changes nothing and does not allocate memory. If the verdict is Allowed, the store
// records the send.
func Judge(log Log, channel Channel, token Token, rules []Rule, now, horizon Instant) Verdict {
	if token != (Token{}) && log.find(channel, token, horizon) >= 0 {
		return Verdict{Outcome: Replayed}
	}
	verdict := Verdict{Outcome: Allowed}
	log = log.Live(horizon)
	shadow := uint32(0)
	for i := range rules {
		at := rules[i].FreesAt(log, now)
		switch {
		case at > 0 && rules[i].Shadow:
			shadow |= 1 << i
		case at > verdict.FreesAt:
			verdict = Verdict{Outcome: Denied, Rule: uint8(i), FreesAt: at}
		}
	}
	if verdict.Outcome == Allowed {
		verdict.Shadow = shadow
	}
	return verdict
}
