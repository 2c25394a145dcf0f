package gate

import (
	"net/http"

	"capper/internal/server/wire"
)

// The type Budgets holds the budgets that all calls share: for users, request bodies and responses.
type Budgets struct {
	Users   *Budget // users about whom calls are deciding
	Bodies  *Budget // bytes of bodies that are received and decoded
	Answers *Budget // bytes of responses until they are written
}

// NewBudgets returns budgets with the sizes that the bounds contain.
func NewBudgets(b Bounds) *Budgets {
	return &Budgets{
		Users:   newBudget(int64(b.InFlightUsers), b.CallTimeout),
		Bodies:  newBudget(b.InFlightBytes, b.CallTimeout),
		Answers: newBudget(b.AnswerBytes, b.CallTimeout),
	}
}

// ErrTooManyBytes returns the failure of a call whose request body does not fit into the memory budget.
func ErrTooManyBytes() *wire.Failure {
	return wire.Overloaded("too many bytes of requests are being received")
}

func errTooManyUsers() *wire.Failure {
	return wire.Overloaded("too many users are being decided")
}

func errTooManyAnswers() *wire.Failure {
	return wire.Overloaded("too many bytes of responses are being written")
}

// The method Refuse decides whether to refuse a call before the server reads the request body. The argument "announced"
// is the size of the request body in bytes, according to the request header. If a budget is exhausted and the client
// already holds its share of that budget, Refuse returns an error.
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

// A Place holds the resources that the budgets have granted to a call. A call holds users until the service has decided
// about the users, and response memory until the response is written.
type Place struct {
	users   *Hold
	answers *Hold
	out     []byte
}

// The method Enter reserves users and response memory in the budgets for a client's call, or returns an error. The
// argument "answer" is the approximate maximum size of the response in bytes.
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

// Buffer returns the buffer into which the server encodes a response. The argument "expected" is the approximate size
// of the response in bytes.
func (p *Place) Buffer(expected int64) []byte {
	p.out = NewBuffer(expected)
	return p.out
}

// Because a slow client may read for a long time, FreeUsers gives the users of a call back to the budget before the
// server writes the response. The argument "out" is the encoded response, whose memory stays reserved in the budget for
// responses.
func (p *Place) FreeUsers(out []byte) {
	p.users.Close()
	p.out = out
	p.answers.Settle(int64(cap(out)))
}

// Write writes the encoded response to w. While Write writes, the client must read at least "rate" bytes per second.
func (p *Place) Write(w http.ResponseWriter, rate int64) {
	answerPace(w, rate).write(w, p.answers, p.out)
}

// WriteShared writes a response that other calls write, too, so that Close does not put the response's bytes back into
// the buffer pool.
func (p *Place) WriteShared(w http.ResponseWriter, rate int64, out []byte) {
	p.users.Close()
	answerPace(w, rate).write(w, p.answers, out)
}

// Close gives all users and bytes that the call still holds back to the budgets.
func (p *Place) Close() {
	p.users.Close()
	p.answers.Close()
	PutBuffer(p.out)
	p.out = nil
}
