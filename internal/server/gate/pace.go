package gate

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// GraceTime is the time that a client may take to send a body or to read a response before Bounds.MinRate applies.
const GraceTime = 10 * time.Second

// The type pace enforces a minimum transfer rate of a request or response: transferred bytes extend the deadline of the
// connection or HTTP/2 stream.
type pace struct {
	set   func(deadline time.Time) error
	rate  int64 // bytes per second
	start time.Time

	mu    sync.Mutex
	moved int64
	at    int64 // number of transferred bytes at the time when the deadline was last set
	ended bool
}

// BodyPace returns a pace that makes the client send the request body at the minimum rate, in bytes per second. The
// argument w of BodyPace is the response writer of the same request.
func BodyPace(w http.ResponseWriter, rate int64) *pace {
	return newPace(http.NewResponseController(w).SetReadDeadline, rate)
}

// answerPace returns a pace that makes the client read the response at the minimum rate, in bytes per second.
func answerPace(w http.ResponseWriter, rate int64) *pace {
	return newPace(http.NewResponseController(w).SetWriteDeadline, rate)
}

func newPace(set func(time.Time) error, rate int64) *pace {
	p := &pace{set: set, rate: rate, start: time.Now()}
	p.push()
	return p
}

// push() sets the deadline of the connection according to the number of bytes transferred so far. If the connection
// supports no deadlines, push() ignores the error.
func (p *pace) push() {
	earned := time.Duration(float64(p.moved) / float64(p.rate) * float64(time.Second))
	_ = p.set(p.start.Add(GraceTime + earned))
	p.at = p.moved
}

// move() counts n transferred bytes. To save system calls, move() extends the deadline only after as many bytes as the
// minimum rate requires in one second.
func (p *pace) move(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.moved += int64(n); !p.ended && p.moved-p.at >= p.rate {
		p.push()
	}
}

// The method Cut sets the deadline of the connection to a past time, so that the call no longer waits for its client.
func (p *pace) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Unix(1, 0))
	}
}

// The method Done removes the deadline of the connection, unless Cut was called.
func (p *pace) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		_ = p.set(time.Time{})
	}
}

// Reader returns a reader that counts the bytes that it reads from r.
func (p *pace) Reader(r io.Reader) io.Reader { return &pacedReader{r, p} }

// pacedReader counts the bytes read from a body.
type pacedReader struct {
	r io.Reader
	p *pace
}

func (r *pacedReader) Read(into []byte) (int, error) {
	n, err := r.r.Read(into)
	r.p.move(n)
	return n, err
}

// The method piece returns the number of bytes of a response that the method write() sends under one deadline. A client
// that reads at the minimum rate needs half of GraceTime for one piece, but a piece has at least 4 KiB and at most 512
// KiB.
func (p *pace) piece() int {
	return int(max(4<<10, min(p.rate*int64(GraceTime/time.Second)/2, 512<<10)))
}

// The method write writes a response in pieces, as fast as the client reads. If a budget cuts off the call, the client
// notices a broken connection and can repeat the call with the same message id.
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
