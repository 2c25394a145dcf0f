package counts

import (
	"context"
	"slices"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
)

// Owed is what scripts told of sends that they could not count, by partition.
type Owed map[int][]script.Owed

// Add adds what a script told.
func (o *Owed) Add(partition int, told []script.Owed) {
	for _, more := range told {
		if *o == nil {
			*o = Owed{}
		}
		i := slices.IndexFunc((*o)[partition], func(one script.Owed) bool { return one.Channel == more.Channel })
		if i < 0 {
			(*o)[partition] = append((*o)[partition], more)
			continue
		}
		(*o)[partition][i].Recorded += more.Recorded
		(*o)[partition][i].Released += more.Released
	}
}

// Settle counts what is owed of the message, each at most once: what is lost on the way
// is not counted. It waits no longer than ctx, and goes on without its caller.
func (c *Counts) Settle(ctx context.Context, token capping.Token, owed Owed) {
	if len(owed) == 0 {
		return
	}
	done := make(chan struct{})
	c.owing.Go(func() {
		defer close(done)
		_ = c.config.Perform(func() *dispatch.Run { // what failed is counted by its kind
			r := c.config.Dispatcher.NewRun(nil, false)
			for partition, told := range owed {
				r.AddOnce(&owedOperation{counts: c, token: token, owed: told}, partition)
			}
			r.Do(context.WithoutCancel(ctx))
			return r
		})
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
}
