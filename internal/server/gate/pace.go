package gate

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// GraceTime is what a body may take to come, and an answer to be taken, before
// Bounds.MinRate is asked for.
const GraceTime = 10 * time.Second

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

// BodyPace is the pace of the body of a call with the response writer.
func BodyPace(w http.ResponseWriter, rate int64) *pace {
	return newPace(http.NewResponseController(w).SetReadDeadline, rate)
}

// answerPace is the pace of what is written to w.
func answerPace(w http.ResponseWriter, rate int64) *pace {
	return newPace(http.NewResponseController(w).SetWriteDeadline, rate)
}

func newPace(set func(time.Time) error, rate int64) *pace {
	p := &pace{set: set, rate: rate, start: time.Now()}
	p.push()
	return p
}

// push sets the deadline that the bytes so far earn. A connection without
// deadlines has none.
func (p *pace) push() {
	earned := time.Duration(float64(p.moved) / float64(p.rate) * float64(time.Second))
	_ = p.set(p.start.Add(GraceTime + earned))
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

// Cut ends the wait for the client at once.
func (p *pace) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Unix(1, 0))
	}
}

// Done lifts the deadline, unless the call was cut off.
func (p *pace) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Time{})
	}
}

// Reader is r, whose bytes count.
func (p *pace) Reader(r io.Reader) io.Reader { return &pacedReader{r, p} }

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
	return int(max(4<<10, min(p.rate*int64(GraceTime/time.Second)/2, 512<<10)))
}

// write writes a large answer at the client's pace. What has been cut off
// reaches the client as a broken connection: it asks again with the same
// message id.
func (p *pace) write(w io.Writer, h *Hold, out []byte) {
	defer h.AllowCut(nil)
	if !h.AllowCut(p.Cut) {
		p.Cut()
	}
	for piece := p.piece(); len(out) > 0; {
		n, err := w.Write(out[:min(len(out), piece)])
		if err != nil {
			return
		}
		p.move(n)
		out = out[n:]
	}
}
