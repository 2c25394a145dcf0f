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

	outcomes = iota // the number of outcomes
)

// outcomeNames are the names of the outcomes in answers, metrics and the audit.
var outcomeNames = [outcomes]string{
	Unavailable: "unavailable", Allowed: "allowed", Replayed: "replayed", Denied: "denied",
}

// Outcomes lists the outcomes.
func Outcomes() (list [outcomes]Outcome) {
	for i := range list {
		list[i] = Outcome(i)
	}
	return list
}

// String returns the outcome's name.
func (o Outcome) String() string { return outcomeNames[o] }

// Verdict is the decision on one user. The zero value is Unavailable.
type Verdict struct {
	Outcome Outcome
	By      Reason // Denied: by what
	// Denied by a limit: the rule that frees a slot last, an index into the user's rules; by suppression: its index in
	// the policy
	Rule    uint8
	Shadow  uint32  // Allowed: the shadow rules that would have denied, a bit each: 1<<i for rule i
	FreesAt Instant // Denied: when every rule has a free slot; Never when no waiting helps
}

// Reason is what denies. Stores know limits only.
type Reason uint8

// The reasons, in the order in which they are looked at, limits last.
const (
	ByLimit       Reason = iota
	BySuppression        // a set of the policy that the user is in
	ByHoldout            // the user is one of those who get nothing, to compare with
	ByQuiet              // it is night where the user is
)

// Name is what the reason is called in the place of a limit's name; "" of ByLimit.
func (r Reason) Name() string {
	return [...]string{ByLimit: "", BySuppression: "suppressed", ByHoldout: "holdout", ByQuiet: "quiet"}[r]
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
