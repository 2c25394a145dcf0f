package server

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// graceTime is what a body may take to come, and an answer to be taken, before
// Bounds.MinRate is asked for.
const graceTime = 10 * time.Second

// pace holds a client to the least rate: the deadline of its connection, or
// stream, moves on as bytes do.
type pace struct {
	set   func(deadline time.Time) error
	rate  int64 // bytes per second
	start time.Time

	mu    sync.Mutex
	moved int64
	at    int64 // what had moved when the deadline was set
	ended bool
}

// newPace is the pace of a call's body.
func (s *Server) newPace(c *call) *pace {
	p := &pace{set: http.NewResponseController(c.w).SetReadDeadline, rate: s.bounds.MinRate, start: time.Now()}
	p.push()
	return p
}

// newAnswerPace is the pace of a call's answer.
func (s *Server) newAnswerPace(c *call) *pace {
	p := &pace{set: http.NewResponseController(c.w).SetWriteDeadline, rate: s.bounds.MinRate, start: time.Now()}
	p.push()
	return p
}

// push sets the deadline that the bytes so far earn. A connection without
// deadlines has none.
func (p *pace) push() {
	earned := time.Duration(float64(p.moved) / float64(p.rate) * float64(time.Second))
	_ = p.set(p.start.Add(graceTime + earned))
	p.at = p.moved
}

// move counts n bytes. The deadline is not set for less than a second's worth.
func (p *pace) move(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved += int64(n); !p.ended && p.moved-p.at >= p.rate {
		p.push()
	}
}

// cut ends the wait for the client at once.
func (p *pace) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Unix(1, 0))
	}
}

// done lifts the deadline, unless the call was cut off.
func (p *pace) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Time{})
	}
}

// pacedReader counts what comes in.
type pacedReader struct {
	r io.Reader
	p *pace
}

func (r *pacedReader) Read(into []byte) (int, error) {
	n, err := r.r.Read(into)
	r.p.move(n)
	return n, err
}

// piece is how much of an answer is written under one deadline: what the least
// rate moves in half the grace, and no more than 512 KiB.
func (p *pace) piece() int {
	return int(max(4<<10, min(p.rate*int64(graceTime/time.Second)/2, 512<<10)))
}

// answer writes a large answer at the client's pace. What has been cut off
// reaches the client as a broken connection: it asks again with the same
// message id.
func (s *Server) answer(c *call, h *hold, out []byte) {
	p := s.newAnswerPace(c)
	defer h.cuttable(nil)
	if !h.cuttable(p.cut) {
		p.cut()
	}
	writeHeader(c.w, http.StatusOK, len(out))
	for piece := p.piece(); len(out) > 0; {
		n, err := c.w.Write(out[:min(len(out), piece)])
		if err != nil {
			return
		}
		p.move(n)
		out = out[n:]
	}
}
