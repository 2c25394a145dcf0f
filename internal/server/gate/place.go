package gate

import (
	"net/http"

	"capper/internal/server/wire"
)

// Budgets are what all calls share.
type Budgets struct {
	Users   *Budget // being decided
	Bodies  *Budget // bytes, of bodies that are received and decoded
	Answers *Budget // bytes, of answers that are made and written
}

// NewBudgets are the budgets of the bounds.
func NewBudgets(b Bounds) *Budgets {
	return &Budgets{
		Users:   newBudget(int64(b.InFlightUsers), b.CallTimeout),
		Bodies:  newBudget(b.InFlightBytes, b.CallTimeout),
		Answers: newBudget(b.AnswerBytes, b.CallTimeout),
	}
}

// ErrTooManyBytes is the failure of a call for whose body there is no memory.
func ErrTooManyBytes() *wire.Failure {
	return wire.Overloaded("too many bytes of requests are being received")
}

func errTooManyUsers() *wire.Failure {
	return wire.Overloaded("too many users are being decided")
}

func errTooManyAnswers() *wire.Failure {
	return wire.Overloaded("too many bytes of responses are being written")
}

// Refuse answers by what is known before a body of so many bytes is read: a
// call is refused while a budget is short and the client holds its share of it.
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

// Place is what an admitted call holds: users while they are decided, and
// memory for its answer until that is written.
type Place struct {
	users   *Hold
	answers *Hold
	out     []byte
}

// Enter admits a client's call of so many users. answer is about the most bytes
// that the answer takes.
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

// Buffer is where the answer, of about so many bytes, is put together.
func (p *Place) Buffer(expected int64) []byte {
	p.out = NewBuffer(expected)
	return p.out
}

// FreeUsers frees the users' part, however slowly the client will read, and keeps
// what the answer takes, which was made in Buffer or has outgrown it.
func (p *Place) FreeUsers(out []byte) {
	p.users.Close()
	p.out = out
	p.answers.Settle(int64(cap(out)))
}

// Write writes the answer to w at the client's pace, which is rate bytes a
// second at least.
func (p *Place) Write(w http.ResponseWriter, rate int64) {
	answerPace(w, rate).write(w, p.answers, p.out)
}

// WriteShared writes an answer that is not the place's own, and that others read, too.
func (p *Place) WriteShared(w http.ResponseWriter, rate int64, out []byte) {
	p.users.Close()
	answerPace(w, rate).write(w, p.answers, out)
}

// Close gives back what is held still. A second time does nothing.
func (p *Place) Close() {
	p.users.Close()
	p.answers.Close()
	PutBuffer(p.out)
	p.out = nil
}
