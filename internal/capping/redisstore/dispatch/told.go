package dispatch

import (
	"log/slog"
	"net"
	"strconv"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/trace"
)

// A share is the part of a pipeline that belongs to one run.
type share struct {
	run      *Run
	commands int
	users    int
	failed   fault.Kind // kind of the fault of the first failed attempt
}

// The type "failures" holds failed attempts, so that one event of a trace span can report many failed attempts.
// Combined events are necessary because a trace span holds only a few hundred events, but many more commands to an
// unreachable node can fail.
type failures []failure

type failure struct {
	kind            fault.Kind
	attempt         int
	commands, users int
}

func (f *failures) add(c *Command, kind fault.Kind) {
	if !c.run.span.IsRecording() {
		return
	}
	for i := range *f {
		if like := &(*f)[i]; like.kind == kind && like.attempt == c.tries {
			like.commands++
			like.users += c.weight()
			return
		}
	}
	*f = append(*f, failure{kind, c.tries, 1, c.weight()})
}

// The method "tell" adds events about failed attempts to a trace span, and then empties the list of failures.
func (f *failures) tell(span trace.Span) {
	for _, like := range *f {
		trace.Event(span, "attempt failed", trace.Text("error.type", string(like.kind)),
			trace.Int("capper.attempt", like.attempt), trace.Int("capper.commands", like.commands),
			trace.Int("capper.users", like.users))
	}
	*f = (*f)[:0]
}

// The method "tell" writes log lines and trace spans about a pipeline that was sent. Each run that has commands in the
// pipeline gets a trace span of its own. The trace span has the start and the end of the pipeline, and links to the
// spans of the other runs. If logging and tracing are off, "tell" does nothing.
func (s *sender) tell(commands []*Command, size int, began time.Time) {
	debug := s.config.Logger.Enabled(commands[0].run.ctx, slog.LevelDebug)
	traced := false
	for _, c := range commands {
		traced = traced || trace.Sampled(c.run.span)
	}
	if !debug && !traced {
		return
	}
	ended := time.Now()
	shares := sharesOf(commands)
	for i := range shares {
		if debug {
			s.log(&shares[i], size, len(shares), ended.Sub(began))
		}
		if trace.Sampled(shares[i].run.span) {
			s.record(&shares[i], size, shares, began, ended)
		}
	}
}

func sharesOf(commands []*Command) (shares []share) {
	at := map[*Run]int{}
	for _, c := range commands {
		i, known := at[c.run]
		if !known {
			i = len(shares)
			at[c.run] = i
			shares = append(shares, share{run: c.run})
		}
		shares[i].commands++
		shares[i].users += c.weight()
		if shares[i].failed == fault.None {
			shares[i].failed = fault.Of(c.attempt.err).Kind
		}
	}
	return shares
}

func (s *sender) log(of *share, size, callers int, took time.Duration) {
	s.config.Logger.DebugContext(of.run.ctx, "Redis pipeline", "node", s.node.Addr(), "commands", of.commands, "users",
		of.users,
		"pipeline", size, "callers", callers, "took", took.String(), "error", string(of.failed))
}

// mostLinks is the maximum number of links in one trace span. If a pipeline has commands of several runs (a run has the
// commands of one caller), the span of each run links to the spans of the other runs.
const mostLinks = 16

func (s *sender) record(of *share, size int, shares []share, began, ended time.Time) {
	var others []trace.Span
	for i := range shares {
		if other := shares[i].run; other != of.run && trace.Sampled(other.span) && len(others) < mostLinks {
			others = append(others, other.span)
		}
	}
	span := trace.StartClient(of.run.span, "PIPELINE", began, others)
	host, port, _ := net.SplitHostPort(s.node.Addr())
	span.SetAttributes(trace.Text("db.system.name", "redis"), trace.Text("db.operation.name", "PIPELINE"),
		trace.Text("server.address", host), trace.Int("capper.commands", of.commands),
		trace.Int("capper.users", of.users), trace.Int("capper.pipeline.callers", len(shares)))
	if size > 1 {
		span.SetAttributes(trace.Int("db.operation.batch.size", size))
	}
	if n, err := strconv.Atoi(port); err == nil {
		span.SetAttributes(trace.Int("server.port", n))
	}
	if net.ParseIP(host) != nil {
		span.SetAttributes(trace.Text("network.peer.address", host))
	}
	if of.failed != fault.None {
		trace.Fail(span, string(of.failed))
	}
	trace.EndAt(span, ended)
}
