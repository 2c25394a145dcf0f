package dispatch

import (
	"log/slog"
	"net"
	"strconv"
	"time"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/trace"
)

// share is the commands of one run in a pipeline that others share.
type share struct {
	run      *Run
	commands int
	users    int
	failed   fault.Kind // of the first one that did
}

// failures are attempts that failed, which a span tells of together: a span has room for
// some hundred events, and a node that is away fails more commands.
type failures []failure

type failure struct {
	kind            fault.Kind
	attempt         int
	commands, users int
}

func (f *failures) add(c *Command, kind fault.Kind) {
	if c.run.span == nil {
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

// tell records what was added since it was called last.
func (f *failures) tell(span *trace.Span) {
	for _, like := range *f {
		span.Event("attempt failed", "error.type", string(like.kind), "capper.attempt", like.attempt,
			"capper.commands", like.commands, "capper.users", like.users)
	}
	*f = (*f)[:0]
}

// tell records and logs the pipeline that was sent: each run that shared it has a span of
// its own, with the same beginning and end, which links to the spans of the others. It does
// nothing where neither is asked for.
func (s *sender) tell(commands []*Command, size int, began time.Time) {
	debug := s.config.Logger.Enabled(commands[0].run.ctx, slog.LevelDebug)
	traced := false
	for _, c := range commands {
		traced = traced || c.run.span != nil
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
		if shares[i].run.span != nil {
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

// mostLinks is to how many others that share a pipeline a span links.
const mostLinks = 16

func (s *sender) record(of *share, size int, shares []share, began, ended time.Time) {
	var others []*trace.Span
	for i := range shares {
		if other := shares[i].run; other != of.run && other.span != nil && len(others) < mostLinks {
			others = append(others, other.span)
		}
	}
	span := of.run.span.StartAt("PIPELINE", trace.Client, began, others)
	span.Text("db.system.name", "redis")
	span.Text("db.operation.name", "PIPELINE")
	if size > 1 {
		span.Int("db.operation.batch.size", size)
	}
	host, port, _ := net.SplitHostPort(s.node.Addr())
	span.Text("server.address", host)
	if n, err := strconv.Atoi(port); err == nil {
		span.Int("server.port", n)
	}
	if net.ParseIP(host) != nil {
		span.Text("network.peer.address", host)
	}
	span.Int("capper.commands", of.commands)
	span.Int("capper.users", of.users)
	span.Int("capper.pipeline.callers", len(shares))
	if of.failed != fault.None {
		span.Fail(string(of.failed))
	}
	span.EndAt(ended)
}
