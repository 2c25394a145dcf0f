package topology

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology/connect"
)

// HintedError is why a store cannot be opened, with what an operator can do
// about it.
type HintedError struct {
	Err  error
	Hint string
}

// Error is the error without the hint.
func (e *HintedError) Error() string { return e.Err.Error() }

// Unwrap is the error without the hint.
func (e *HintedError) Unwrap() error { return e.Err }

// Explain adds to why the store cannot start what can be found out about it,
// in a time of its own: the start's may be over.
func (t *Topology) Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var reply redis.Error
	if !errors.As(err, &reply) {
		return hint(err, t.diagnose(ctx))
	}
	switch fix := fault.Of(reply); {
	case fix.Vet: // rights are lacking
		return cmp.Or(t.askRights(ctx), err)
	case fix.Kind == fault.Down:
		return hint(err, cmp.Or(t.clusterHint(ctx), fix.Kind.Hint()))
	}
	return err
}

func hint(err error, text string) error {
	if text == "" {
		return err
	}
	return &HintedError{err, text}
}

// askRights finds the first server where rights are lacking, and all of them.
// Whether it is a cluster's is not known: all its commands are tried.
func (t *Topology) askRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connect.DiagnoseTime)
	defer cancel()
	for _, n := range t.Nodes() {
		trial := t.trial("node "+n.addr, nil)
		trial.Cluster = t.config.SentinelMaster == ""
		if lacking, err := t.rules.Rights(ctx, n.client, trial); err == nil && lacking != nil {
			return lacking
		}
	}
	return nil
}

// diagnose finds out why the first address of the configuration gives no
// answer; "" when nothing is to be seen.
func (t *Topology) diagnose(ctx context.Context) string {
	hint, talks := t.config.Diagnose(ctx)
	if talks {
		return t.clusterHint(ctx)
	}
	return hint
}

// clusterHint is the one for a cluster that does not serve, when a node says
// that it does not; otherwise "".
func (t *Topology) clusterHint(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, connect.DiagnoseTime)
	defer cancel()
	for _, n := range t.Nodes() {
		if v, err := n.view(ctx); t.cluster && err == nil && !v.ok {
			return fault.ClusterDown
		}
	}
	return ""
}
