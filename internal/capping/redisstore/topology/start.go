package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/fault"
)

// The method Discover finds out whether the configured addresses are nodes of a cluster or single servers, and checks
// that the servers belong together. The method Discover also reads the routes (the node of each partition). For an
// address that does not answer, Discover returns a warning.
func (t *Topology) Discover(ctx context.Context) (warnings []string, err error) {
	if t.config.SentinelMaster == "" {
		if warnings, err = t.findKind(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.learn(ctx); err != nil {
		return nil, err
	}
	if len(t.Masters()) == 0 {
		return nil, errors.New("no Redis node serves any hash slot: the cluster is down or was never created")
	}
	if t.cluster {
		err = t.findStrangers(ctx)
	}
	return warnings, err
}

// The method "learn" runs the first refresh of the routes (the node of each partition). If servers reply too late,
// "learn" repeats the refresh, because the start of the store has more time than one refresh.
func (t *Topology) learn(ctx context.Context) error {
	for {
		if inTime, err := t.refresh(ctx); err == nil || inTime || over(ctx) {
			return err
		}
	}
}

// findKind asks the server at every configured address whether it is a node of a cluster. At least one of the servers
// must reply. Either all servers that reply must be cluster nodes, or none of them.
func (t *Topology) findKind(ctx context.Context) (warnings []string, err error) {
	// The distance to the servers is not known yet.
	ctx, cancel := context.WithTimeout(ctx, tripsOfAttempt*max(time.Second, t.config.AttemptTimeout))
	defer cancel()
	enabled, faults := make([]string, len(t.config.Addrs)), make([]error, len(t.config.Addrs))
	t.askAddresses(func(i int, n *Node) {
		text, err := n.client.Info(ctx, "cluster").Result()
		if err != nil {
			faults[i] = fmt.Errorf("redis %s: %w", n.addr, err)
			return
		}
		enabled[i] = cmp.Or(ParseInfo(text)["cluster_enabled"], "0")
	})
	first := slices.IndexFunc(enabled, func(kind string) bool { return kind != "" })
	if first < 0 {
		return nil, errors.Join(faults...)
	}
	t.cluster = enabled[first] == "1"
	for i, kind := range enabled {
		switch {
		case kind == "":
			warnings = append(warnings, fmt.Sprintf("%v: only the other addresses are used", faults[i]))
			t.noteSilent(t.config.Addrs[i], warnings[len(warnings)-1])
		case kind != enabled[first]:
			return nil, fmt.Errorf("the Redis servers %s and %s must both be cluster nodes or both be single servers",
				t.config.Addrs[first], t.config.Addrs[i])
		}
	}
	return warnings, nil
}

// noteSilent stores the warning that an address does not answer; the warning stays until the address answers.
func (t *Topology) noteSilent(addr, warning string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.silent == nil {
		t.silent = map[string]string{}
	}
	t.silent[addr] = warning
}

// findStrangers returns an error if a configured address belongs to another cluster. If configured addresses belonged
// to different clusters, the store would use a random one of the clusters.
func (t *Topology) findStrangers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.budget())
	defer cancel()
	faults := make([]error, len(t.config.Addrs))
	t.askAddresses(func(i int, n *Node) {
		v, err := n.view(ctx)
		if err == nil && len(v.members) > 0 && !v.of(t.members) {
			faults[i] = fmt.Errorf(
				"the Redis servers %s and %s must be nodes of one cluster, but belong to different clusters",
				t.Masters()[0].addr, n.addr)
		}
	})
	return errors.Join(faults...)
}

// askAddresses calls the function "question" for all configured addresses at the same time.
func (t *Topology) askAddresses(question func(i int, n *Node)) {
	var asked sync.WaitGroup
	for i, addr := range t.config.Addrs {
		asked.Go(func() { question(i, t.node(addr)) })
	}
	asked.Wait()
}

// A HintedError is an error at the start of the store with a hint for the operator.
type HintedError struct {
	Err  error
	Hint string
}

// Error returns the text of the error, but not the hint.
func (e *HintedError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the hint.
func (e *HintedError) Unwrap() error { return e.Err }

// The method Explain looks for the reason of an error at the start of the store, and adds a hint for the operator to
// the error. The method Explain ignores the deadline of the context, because the time for the start may already be
// over.
func (t *Topology) Explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var reply redis.Error
	if !errors.As(err, &reply) {
		return hint(err, cmp.Or(CertificateHint(err), t.diagnose(ctx)))
	}
	switch fix := fault.Of(reply); {
	case fix.Vet: // missing rights
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

// askRights returns an error about missing rights of the store's Redis user on the first server where rights are
// missing. Without Sentinel, askRights also tries cluster commands, because the kind of the server may not be known.
func (t *Topology) askRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
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

// The method "diagnose" looks for the reason why the first configured address does not answer. The result of the method
// "diagnose" is a hint for the operator, or "" if no reason was found.
func (t *Topology) diagnose(ctx context.Context) string {
	hint, talks := t.config.Diagnose(ctx)
	if talks {
		return t.clusterHint(ctx)
	}
	return hint
}

// clusterHint asks the nodes whether the cluster is down. If the cluster is down, clusterHint returns a hint for the
// operator, and otherwise "".
func (t *Topology) clusterHint(ctx context.Context) string {
	if !t.cluster {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTime)
	defer cancel()
	for _, n := range t.Nodes() {
		if v, err := n.view(ctx); err == nil && !v.ok {
			return fault.ClusterDown
		}
	}
	return ""
}
