package server

// place is what an admitted call holds: users while they are decided, and
// memory for its answer until that is written.
type place struct {
	s       *Server
	c       *call
	users   *hold
	answers *hold
	out     []byte
}

func errTooManyUsers() *failure   { return overloaded("too many users are being decided") }
func errTooManyAnswers() *failure { return overloaded("too many bytes of answers are being written") }

// enter admits a call's users: the bounds of all calls, and the client's rate.
// answer is about the most bytes that the answer takes.
func (s *Server) enter(c *call, a *audience, answer int64) (*place, error) {
	field := "user_ids"
	if a.bitmap {
		field = "users_bitmap"
	}
	p := &place{s: s, c: c, users: s.users.open(c.holder), answers: s.answers.open(c.holder)}
	err := error(nil)
	switch {
	case !p.answers.grow(answer):
		err = errTooManyAnswers()
	case !p.users.grow(int64(len(a.users))):
		err = errTooManyUsers()
	default:
		err = s.admit(c, field, len(a.users))
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// buffer is where the answer, of about so many bytes, is put together.
func (p *place) buffer(expected int64) []byte {
	p.out = newBuffer(expected)
	return p.out
}

// answer writes the answer, which was made in buffer or has outgrown it. The
// users' place is free again, however slowly the client reads.
func (p *place) answer(out []byte) {
	p.users.close()
	p.out = out
	p.answers.settle(int64(cap(out)))
	p.s.answer(p.c, p.answers, out)
}

func (p *place) close() {
	p.users.close()
	p.answers.close()
	putBuffer(p.out)
	p.out = nil
}
