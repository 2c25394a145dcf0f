package pacing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Pacers gives permits: it joins policy and store. It is safe for concurrent use.
type Pacers struct {
	store   Store
	policy  atomic.Pointer[Policy]
	records *Records // nil: what grants leave behind is not bounded
}

// New is the pacers of the policy over the store.
func New(store Store, policy *Policy) *Pacers {
	p := &Pacers{store: store}
	p.SetPolicy(policy)
	return p
}

// Bound bounds what grants leave behind. Call it before the first call for permits.
func (p *Pacers) Bound(records *Records) { p.records = records }

// Records are those of Bound; nil: there are none.
func (p *Pacers) Records() *Records { return p.records }

// Policy is the policy in force.
func (p *Pacers) Policy() *Policy { return p.policy.Load() }

// SetPolicy puts a policy in force, for what is recorded too.
func (p *Pacers) SetPolicy(policy *Policy) {
	if policy == nil {
		policy = &Policy{}
	}
	p.policy.Store(policy)
}

// Call asks for permits.
type Call struct {
	Pacers  []string // names
	Permits int
	MaxWait time.Duration
	// Client and RequestID name the request; without RequestID it is not remembered.
	Client, RequestID string
	// Message stands for the message id, hex digits; "": none was given.
	Message string
}

// Answer is what a call was given.
type Answer struct {
	Grant           // Target is an index into Pacers
	Refused int     // of the call's permits
	Fresh   int     // of Granted: those that no earlier call had been granted
	Pacers  []Pacer // by target
	Version string  // of the policy that judged the call
}

// FieldError is what a caller got wrong.
type FieldError struct {
	Field string // pacer, pacers[1], message_id or request_id
	Rule  string // what must hold, and what was found
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Rule }

// Check is what is wrong with a call, a *FieldError, or nil.
func (p *Pacers) Check(call *Call) error {
	_, _, err := p.ask(call)
	return err
}

// Take takes permits. A fault of the call is a *FieldError, and a *RecordsError is that it took
// nothing as there is no room for its record; any other error is that nothing is known, and
// nothing may be sent.
func (p *Pacers) Take(ctx context.Context, call *Call) (*Answer, error) {
	answer, ask, err := p.ask(call)
	if err != nil {
		return nil, err
	}
	ask.Request = requestOf(call, 0)
	entry, err := p.records.enter(ctx, call.Client, ask)
	if err != nil {
		return nil, err
	}
	defer entry.leave()
	for part := 0; ; part++ {
		ask.Request, ask.Continues = requestOf(call, part), part > 0
		grant, err := p.store.TakePermits(ctx, ask)
		if errors.As(err, new(*ReuseError)) {
			return nil, &FieldError{"request_id", fmt.Sprintf("%q was used by an earlier request with other pacers, "+
				"another number of permits or another message", call.RequestID)}
		}
		if err != nil {
			return nil, err
		}
		entry.note(ask, &grant)
		ask.Permits -= grant.Granted
		answer.add(grant)
		answer.Refused = ask.Permits
		if !grant.More || part+1 == mostParts {
			return answer, nil
		}
	}
}

// mostParts is in how many steps a call is done that one of the store does not
// suffice for, see MostSteps.
const mostParts = 32

// add adds what a part was granted to what those before were.
func (a *Answer) add(part Grant) {
	for i := range a.Runs { // of an earlier step: waits from then
		a.Runs[i].Wait -= part.At.Sub(a.At)
	}
	if !part.Replayed {
		a.Fresh += part.Granted
	}
	part.Granted += a.Granted
	part.Runs = append(a.Runs, part.Runs...)
	part.Replayed = part.Replayed || a.Replayed
	a.Grant = part
}

// ask translates the call by the policy in force. The store checks the bounds of the ask, by Ask.Check.
func (p *Pacers) ask(call *Call) (*Answer, *Ask, error) {
	policy := p.Policy()
	answer := &Answer{Version: policy.Version}
	ask := &Ask{Permits: call.Permits, MaxWait: call.MaxWait, Content: contentOf(call)}
	for i, name := range call.Pacers {
		field := fmt.Sprintf("pacers[%d]", i)
		pacer, known := policy.Pacer(name)
		switch {
		case !known:
			return nil, nil, &FieldError{field, fmt.Sprintf("must be a configured pacer, got %q", name)}
		case slices.Contains(call.Pacers[:i], name):
			return nil, nil, &FieldError{field, fmt.Sprintf("is given twice: %q", name)}
		case pacer.PerMessage && call.Message == "":
			return nil, nil, &FieldError{"message_id", fmt.Sprintf("is required: the pacer %q is per message", name)}
		}
		target := Target{Pacer: name, Limits: pacer.Judged()}
		if pacer.PerMessage {
			target.Message = call.Message
		}
		if pacer.MaxWait > 0 {
			ask.MaxWait = min(ask.MaxWait, pacer.MaxWait)
		}
		ask.Targets, answer.Pacers = append(ask.Targets, target), append(answer.Pacers, *pacer)
	}
	return answer, ask, nil
}

// Standing is a pacer and what it has given out.
type Standing struct {
	*Pacer
	State // zero of a pacer per message
}

// Look is how the pacer of a name stands, or with "" all of them, in the order of
// the policy that it returns. It takes nothing. An unknown one is a *FieldError.
func (p *Pacers) Look(ctx context.Context, name string) (standings []Standing, policy *Policy, err error) {
	policy = p.Policy()
	for i := range policy.Pacers {
		if pacer := &policy.Pacers[i]; name == "" || pacer.Name == name {
			standings = append(standings, Standing{Pacer: pacer})
		}
	}
	if name != "" && len(standings) == 0 {
		return nil, nil, unknown(name)
	}
	var plain []*Standing
	for i := range standings {
		if !standings[i].PerMessage {
			plain = append(plain, &standings[i])
		}
	}
	for some := range slices.Chunk(plain, MaxPacers) {
		if err := p.look(ctx, some); err != nil {
			return nil, nil, err
		}
	}
	return standings, policy, nil
}

// look fills in the states of pacers, at most MaxPacers.
func (p *Pacers) look(ctx context.Context, standings []*Standing) error {
	ask := &Ask{}
	for _, s := range standings {
		ask.Targets = append(ask.Targets, Target{Pacer: s.Name, Limits: s.Judged()})
	}
	grant, err := p.store.TakePermits(ctx, ask)
	if err != nil {
		return err
	}
	for i, s := range standings {
		s.State = grant.States[i]
	}
	return nil
}

// requestOf stands for the part of the call's request.
func requestOf(call *Call, part int) (r Request) {
	if call.RequestID == "" || call.Permits == 0 {
		return r
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%s", call.Client, part, call.RequestID))
	return Request(sum[:16])
}

// contentOf stands for what the call asks for, by the names that it says it with: a
// reload that gives a pacer other logs does not make it another call.
func contentOf(call *Call) [8]byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %s", slices.Sorted(slices.Values(call.Pacers)), call.Permits,
		call.Message))
	return [8]byte(sum[:8])
}

// Forget forgets what a pacer has given out. An unknown one is a *FieldError.
func (p *Pacers) Forget(ctx context.Context, name string) error {
	if _, known := p.Policy().Pacer(name); !known {
		return unknown(name)
	}
	return p.store.ForgetPacer(ctx, name)
}

func unknown(name string) *FieldError {
	return &FieldError{"pacer", fmt.Sprintf("must be a configured pacer, got %q", name)}
}
