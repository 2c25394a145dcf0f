package gate

import (
	"net/http"

	"capper/internal/server/wire"
)

// Budgets holds the budgets that all calls share: users, bodies and answers.
type Budgets struct {
	Users   *Budget // being decided
	Bodies  *Budget // bytes, of bodies that are received and decoded
	Answers *Budget // bytes, of answers that are made and written
}

// NewBudgets returns budgets with the sizes in the bounds.
func NewBudgets(b Bounds) *Budgets {
	return &Budgets{
		Users:   newBudget(int64(b.InFlightUsers), b.CallTimeout),
		Bodies:  newBudget(b.InFlightBytes, b.CallTimeout),
		Answers: newBudget(b.AnswerBytes, b.CallTimeout),
	}
}

// ErrTooManyBytes returns the failure of a call whose body does not fit into the memory budget.
func ErrTooManyBytes() *wire.Failure {
	return wire.Overloaded("too many bytes of requests are being received")
}

func errTooManyUsers() *wire.Failure {
	return wire.Overloaded("too many users are being decided")
}

func errTooManyAnswers() *wire.Failure {
	return wire.Overloaded("too many bytes of responses are being written")
}

// Refuse refuses a call before its body of the announced size is read. A call is refused while a budget is exhausted
// and the client holds its full share of it.
func (b *Budgets) Refuse(client string, announced int64) error {
	switch {
	case b.Bodies.CountRefusal(client, max(announced, smallestBuffer)):
		return ErrTooManyBytes()
	case b.Users.CountRefusal(client, 1):
		return errTooManyUsers()
	case b.Answers.CountRefusal(client, 1):
		return errTooManyAnswers()
	}
	return nil
}

// Place is the part of the budgets that an admitted call holds: users until they are decided, and memory for the
// answer until the answer is written.
type Place struct {
	users   *Hold
	answers *Hold
	out     []byte
}

// Enter admits a client's call with the given number of users. The answer argument is the approximate maximum size of
// the answer in bytes.
func (b *Budgets) Enter(client string, users int, answer int64) (*Place, error) {
	p := &Place{users: b.Users.Open(client), answers: b.Answers.Open(client)}
	err := error(nil)
	switch {
	case !p.answers.Grow(answer):
		err = errTooManyAnswers()
	case !p.users.Grow(int64(users)):
		err = errTooManyUsers()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Buffer returns the buffer in which to encode an answer of about the expected size in bytes.
func (p *Place) Buffer(expected int64) []byte {
	p.out = NewBuffer(expected)
	return p.out
}

// FreeUsers returns the users to the budget before a slow client has read the answer. The place keeps the memory of
// the answer in out, which was encoded into Buffer or outgrew it.
func (p *Place) FreeUsers(out []byte) {
	p.users.Close()
	p.out = out
	p.answers.Settle(int64(cap(out)))
}

// Write writes the answer to w at the client's pace, which must be at least rate bytes a second.
func (p *Place) Write(w http.ResponseWriter, rate int64) {
	answerPace(w, rate).write(w, p.answers, p.out)
}

// WriteShared writes an answer whose bytes other calls read too, and which the place therefore does not own.
func (p *Place) WriteShared(w http.ResponseWriter, rate int64, out []byte) {
	p.users.Close()
	answerPace(w, rate).write(w, p.answers, out)
}

// Close returns the remaining parts to the budgets. A second Close has no effect.
func (p *Place) Close() {
	p.users.Close()
	p.answers.Close()
	PutBuffer(p.out)
	p.out = nil
}
