package baseline

import (
	"context"
	"runtime"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The constants lanes and pipelineCommands have the same values as in package dispatch, so that a comparison is fair.
const (
	lanes            = 2
	pipelineCommands = 64
)

// Shared is a Redis client that combines script calls of several goroutines in one pipeline, like the store. A Shared
// client is safe for concurrent use.
type Shared struct {
	redis.UniversalClient
	mu      sync.Mutex
	queue   []*call
	running int
}

// A call is a script call that waits for the reply of Redis.
type call struct {
	*redis.Cmd
	done chan struct{}
}

// Share returns a Shared client that uses r. The caller of Share closes r.
func Share(r redis.UniversalClient) *Shared { return &Shared{UniversalClient: r} }

// EvalSha runs a script that Redis has loaded. Concurrent calls of EvalSha share one pipeline.
func (s *Shared) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	line := append(make([]any, 0, 3+len(keys)+len(args)), "evalsha", sha, len(keys))
	for _, key := range keys {
		line = append(line, key)
	}
	c := &call{redis.NewCmd(ctx, append(line, args...)...), make(chan struct{})}
	s.submit(c)
	<-c.done
	return c.Cmd
}

func (s *Shared) submit(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, c)
	if s.running < lanes {
		s.running++
		go s.work()
	}
}

// The method "work" sends pipelines of script calls until the queue is empty.
func (s *Shared) work() {
	runtime.Gosched() // lets other goroutines add calls to the same pipeline
	for calls := s.take(); calls != nil; calls = s.take() {
		pipe := s.Pipeline()
		for _, c := range calls {
			_ = pipe.Process(context.Background(), c.Cmd)
		}
		_, _ = pipe.Exec(context.Background()) // each call has its own error
		for _, c := range calls {
			close(c.done)
		}
	}
}

// The method "take" removes the script calls of the next pipeline from the queue and returns these calls, or nil if the
// queue is empty.
func (s *Shared) take() (calls []*call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.running--
		return nil
	}
	calls = s.queue[:min(len(s.queue), pipelineCommands)]
	s.queue = s.queue[len(calls):]
	return calls
}
